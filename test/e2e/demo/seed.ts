import type { Cluster } from "@pipe-scaling/local-cluster";
import * as z from "zod";
import type { Credentials } from "./http.ts";
import { ACME_PIPES, GLOBEX_PIPES } from "./objects.ts";
import { pipeScaling } from "./processes.ts";

const made = z.object({ id: z.guid() });
const madeKey = z.object({ keyId: z.string().min(1), keySecret: z.string().min(1) });

export interface Tenant {
  readonly organizationId: string;
  readonly serviceId: string;
}

export interface Seeded {
  readonly acme: Tenant & { readonly key: Credentials };
  /** Another tenant, which Acme must not be able to change. */
  readonly globex: Tenant;
}

/** Creates two tenants with the commands of the platform team. */
export async function seed(cluster: Cluster, tiersFile: string, signal: AbortSignal): Promise<Seeded> {
  const run = (...args: string[]) => pipeScaling(cluster, args, signal);

  const tenant = async (name: string, service: string, pipesNamespace: string): Promise<Tenant> => {
    const organizationId = made.parse(
      await run(
        "admin",
        "organization",
        "create",
        "--name",
        name,
        "--tier",
        "basic",
        "--tiers-file",
        tiersFile,
      ),
    ).id;
    const serviceId = made.parse(
      await run(
        ...["admin", "service", "create", "--organization", organizationId],
        ...["--name", service, "--pipes-namespace", pipesNamespace],
      ),
    ).id;
    return { organizationId, serviceId };
  };

  const [acme, globex] = await Promise.all([
    tenant("Acme Corp", "orders", ACME_PIPES),
    tenant("Globex", "ledger", GLOBEX_PIPES),
  ]);
  const ofAcme = ["--organization", acme.organizationId];
  const [key] = await Promise.all([
    run("admin", "key", "create", ...ofAcme, "--name", "deploy", "--role", "admin"),
    run(
      ...["admin", "member", "add", ...ofAcme, "--user-id", "u-ada", "--name", "Ada Lovelace"],
      ...["--email", "ada@example.com", "--role", "admin"],
    ),
  ]);
  return { acme: { ...acme, key: madeKey.parse(key) }, globex };
}
