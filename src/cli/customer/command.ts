import type { Options } from "../../settings/option.ts";
import { type CommandDefinition, type CommandSpec, defineCommand } from "../command.ts";
import { CliError } from "../failure.ts";
import { waitFor } from "../view/poll.ts";
import { accessOf, accessOptions } from "./access.ts";
import { ApiClient } from "./client.ts";
import { profilePath, readProfiles } from "./profile-file.ts";
import { organizations } from "./responses.ts";

/** Declares a command that calls the API. It also has the options for the address and the key. */
export function apiCommand<O extends Options>(spec: CommandSpec<O, [api: ApiClient]>): CommandDefinition;
export function apiCommand(spec: CommandSpec<Options, [api: ApiClient]>): CommandDefinition {
  return defineCommand<Options & typeof accessOptions>({
    ...spec,
    options: { ...spec.options, ...accessOptions },
    async run(values, io) {
      const access = accessOf(values, io.env, () => readProfiles(profilePath(io.env)));
      // Loads the HTTP client, which --help does not need.
      const { openTransport } = await import("./transport.ts");
      const transport = openTransport(access, { env: io.env });
      const tell = (sentence: string) => io.err(`${sentence}\n`);
      try {
        const api = new ApiClient({ access, transport, tell, wait: waitFor, signal: io.signal });
        return await spec.run(api, values, io);
      } finally {
        await transport.close();
      }
    },
  });
}

/** @throws CliError if the organization of the key has no record */
export async function ownOrganization(api: ApiClient): Promise<{ id: string; name: string }> {
  const { result } = await api.request({ method: "GET", path: "/v1/organizations" }, organizations);
  const [own] = result;
  if (own) return own;
  throw new CliError(
    `${api.access.url} has no record of the organization of the key that ends in ${api.access.keySuffix}: ask its operator.`,
  );
}

/** The path of the organization of the key. */
export async function organizationPath(api: ApiClient): Promise<string> {
  return `/v1/organizations/${encodeURIComponent((await ownOrganization(api)).id)}`;
}

/** The path of a resource of a service. */
export async function servicePath(api: ApiClient, service: string, resource: string): Promise<string> {
  return `${await organizationPath(api)}/services/${service}/${resource}`;
}
