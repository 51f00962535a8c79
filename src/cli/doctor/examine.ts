import { LEASE_NAME } from "../../controller/names.ts";
import type { KubeClient } from "../../kube/client.ts";
import type { Lease } from "../../kube/objects.ts";
import { LEASES, objectPath } from "../../kube/paths.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DEFINITION_PATH, type Definition, examineDefinition } from "./definition.ts";
import { Findings } from "./finding.ts";
import { examineInstallations, findInstallations, type Installation, tiersOf } from "./installation.ts";
import { examineLease } from "./lease.ts";
import { examinePermissions } from "./permissions.ts";
import { Reader } from "./reader.ts";
import { askSelf, examineServer, ofClock, withoutServer } from "./server.ts";
import { examineTenants } from "./tenants.ts";

export interface ExaminationOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Namespace of the records. */
  readonly records: string;
  /** Names of the tiers, where the caller knows them; else those of the installed controller. */
  readonly tiers: ReadonlySet<string> | undefined;
  readonly ownVersion: string;
}

/**
 * Looks at everything, writes nothing (a review of rights leaves nothing behind), and does without what the
 * caller may not see. It ends early when the API server does not answer, which is a finding too.
 */
export async function examine(options: ExaminationOptions): Promise<Findings> {
  const findings = new Findings();
  try {
    await examineAll(options, findings);
  } catch (error) {
    findings.add(withoutServer(options.client.server, error));
  }
  return findings;
}

async function examineAll(options: ExaminationOptions, findings: Findings): Promise<void> {
  const { client, clock, signal, records } = options;
  const reader = new Reader(client, findings, signal);
  findings.add(...(await examineServer(client, clock, signal)));
  const aheadMs = await examineClock(reader, clock);
  await readDefinition(reader);
  const installations = await readInstallations(reader, options);
  await readLease(reader, records, clock.now() + aheadMs);
  const controller = installations.find(({ component }) => component === "controller");
  const tiers = options.tiers ?? (controller && (await tiersOf(reader, controller)));
  await examineTenants(reader, { records, tiers, pipeNamespaces: controller?.pipeNamespaces ?? [] });
}

/** @returns how far the server's clock is ahead of ours, as far as that is known */
async function examineClock(reader: Reader, clock: Clock): Promise<number> {
  const asked = askSelf(reader.client, clock, reader.signal);
  const self = await reader.allowed("clock", "ask who you are (create selfsubjectreviews)", asked);
  if (self) reader.findings.add(...ofClock(self));
  return self?.aheadMs ?? 0;
}

async function readDefinition(reader: Reader): Promise<void> {
  const got = await reader.get<Definition>("definition", "get customresourcedefinitions", DEFINITION_PATH);
  if (got) reader.findings.add(...examineDefinition(got.object));
}

/** @returns those that work by these records */
async function readInstallations(
  reader: Reader,
  { records, ownVersion }: ExaminationOptions,
): Promise<readonly Installation[]> {
  const found = await findInstallations(reader);
  if (!found) return [];
  reader.findings.add(...examineInstallations(found, records, ownVersion));
  const ours = found.filter((each) => each.records === records);
  for (const each of ours) reader.findings.add(...(await examinePermissions(reader, each)));
  return ours;
}

/** @param nowMs by the clock of the API server */
async function readLease(reader: Reader, records: string, nowMs: number): Promise<void> {
  const path = objectPath(LEASES, records, LEASE_NAME);
  const got = await reader.get<Lease>("lease", `get leases in ${records}`, path);
  if (got) reader.findings.add(...examineLease(got.object, records, nowMs));
}
