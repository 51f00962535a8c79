import type { KubeClient } from "./client.ts";
import { isForbiddenByRbac, isWithoutRoles, unlessCode } from "./errors.ts";
import { groupPath, type Resource } from "./paths.ts";

interface ResourceList {
  readonly resources: readonly { readonly name: string }[];
}

/** Returns whether the API server serves a kind, for example because its CRD is installed. */
export async function isServed(
  client: Pick<KubeClient, "json">,
  resource: Resource,
  signal?: AbortSignal,
): Promise<boolean> {
  const call = client.json<ResourceList>({ path: groupPath(resource), signal });
  const { resources } = await unlessCode(404, call, { resources: [] });
  return resources.some(({ name }) => name === resource.plural);
}

/** Like `isServed`, and returns true if the account may not know: a list of the kind then shows whether it is served. */
export async function mayBeServed(...request: Parameters<typeof isServed>): Promise<boolean> {
  try {
    return await isServed(...request);
  } catch (error) {
    if (isForbiddenByRbac(error) && !isWithoutRoles(error)) return true;
    throw error;
  }
}
