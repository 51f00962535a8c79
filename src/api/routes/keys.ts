import type { ApiKey } from "../../records/api-key.ts";
import type { Caches } from "../caches.ts";
import { organizationAt, type Records } from "../places.ts";
import type { Route } from "../routes.ts";
import { type ApiKeyObject, toApiKey } from "../schemas.ts";

/** As many keys as an organization may have (api-contract, part 2). */
const LIMIT = 100;

export function keyRoutes(caches: Records & Pick<Caches, "keysOf" | "usedAt">): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/v1/organizations/{organizationId}/keys",
      serve(call): ApiKeyObject[] {
        const { id } = organizationAt(call, caches);
        const keys = caches.keysOf(id).toSorted(byCreation).slice(0, LIMIT);
        return keys.map((key) => toApiKey(key, caches.usedAt(key)));
      },
    },
  ];
}

/** The id decides where several were made at once, so that the order is always the same. */
function byCreation(a: ApiKey, b: ApiKey): number {
  return a.createdAt.getTime() - b.createdAt.getTime() || Number(a.id > b.id) - Number(a.id < b.id);
}
