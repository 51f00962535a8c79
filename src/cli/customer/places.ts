import { CliError } from "../failure.ts";
import { organizations } from "./answers.ts";
import type { ApiClient } from "./client.ts";

/**
 * The organization that a command is about.
 *
 * @param given its id, as the person has it
 * @throws CliError where the key belongs to none that there is
 */
export async function organizationId(api: ApiClient, given: string | undefined): Promise<string> {
  return given ?? (await ownOrganization(api)).id;
}

export async function ownOrganization(api: ApiClient): Promise<{ id: string; name: string }> {
  const { result } = await api.ask({ method: "GET", path: "/v1/organizations" }, organizations);
  const [own] = result;
  if (own) return own;
  throw new CliError(
    `The key that ends in ${api.access.keySuffix} belongs to an organization that ${api.access.url} has no record of: ask who operates it.`,
  );
}

export function organizationPath(id: string): string {
  return `/v1/organizations/${encodeURIComponent(id)}`;
}

export function servicePath(organization: string, service: string): string {
  return `${organizationPath(organization)}/services/${encodeURIComponent(service)}`;
}
