import * as z from "zod";
import type { ApiKey } from "../../records/api-key.ts";
import { type ApiKeyObject, apiKey, toApiKey } from "../api-key-schema.ts";
import type { Caches } from "../caches.ts";
import { organizationAt, type Records } from "../places.ts";
import type { Operation, Route } from "../routes.ts";

/** As many keys as an organization may have (api-contract, part 2). */
const LIMIT = 100;

const list = {
  id: "listKeys",
  tag: "OpenAPI",
  summary: "List the API keys of an organization",
  description: `The organization's API keys by the time they were made, at most ${LIMIT}. Their secrets are never told.`,
  result: z.array(apiKey),
  refusals: { 404: "There is no such organization, or it is not the key's own." },
} as const satisfies Operation;

export function keyRoutes(caches: Records & Pick<Caches, "keysOf" | "usedAt">): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/v1/organizations/{organizationId}/keys",
      operation: list,
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
