import { DATABASE_TYPE, LEASE_NAME, SERVICE_LABEL, TYPE_LABEL } from "../../controller/names.ts";
import {
  type AutoscalerView,
  actsOn,
  HORIZONTAL_AUTOSCALERS,
  toHorizontalAutoscalerView,
  toVerticalAutoscalerView,
  VERTICAL_AUTOSCALERS,
} from "../../controller/observe/autoscaler-view.ts";
import { type DeploymentView, toDeploymentView } from "../../controller/observe/deployment-view.ts";
import { toPipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import type { KubeClient } from "../../kube/client.ts";
import type { ConfigMap, Deployment, KubeObject, Lease, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, DEPLOYMENTS, LEASES, objectPath, SECRETS } from "../../kube/paths.ts";
import { RESOURCE_LABEL } from "../../records/labels.ts";
import type { Clock } from "../../runtime/clock.ts";
import { recordsFlag } from "../common-options.ts";
import { CRD_PATH, type Crd, checkCrd } from "./crd.ts";
import {
  checkInstallations,
  checkLease,
  findInstallations,
  type Installation,
  tiersOf,
} from "./installation.ts";
import { checkPermissions, userOf } from "./permissions.ts";
import { checkPipe, checkScaling, checkUnscaled } from "./pipes.ts";
import { Reader } from "./reader.ts";
import { checkReferences, type NamespaceState, readRecords } from "./records.ts";
import { error, note, Report, type Result } from "./result.ts";
import { checkClock, checkServer, clockOffsetMs, serverFailure } from "./server.ts";

export interface DoctorOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Namespace of the records. */
  readonly records: string;
  /** Names of the tiers; default: those of the installed controller. */
  readonly tiers: ReadonlySet<string> | undefined;
  readonly ownVersion: string;
}

/** Runs all checks. Writes nothing (access reviews are not stored), and skips what the kubeconfig may not read. */
export async function runChecks(options: DoctorOptions): Promise<Report> {
  const report = new Report();
  try {
    await checkAll(options, report);
  } catch (cause) {
    report.add("server", [serverFailure(options.client.server, cause)]);
  }
  return report;
}

async function checkAll(options: DoctorOptions, report: Report): Promise<void> {
  const { client, clock, signal, records, ownVersion } = options;
  const reader = new Reader(client, report, signal);
  report.add("server", await checkServer(client, clock, signal));

  const review = clockOffsetMs(client, clock, signal).then((offsetMs) => ({ offsetMs }));
  const self = await reader.allowed("clock", "create selfsubjectreviews", review);
  if (self) report.add("clock", [checkClock(self.offsetMs)]);

  const crd = await reader.get<Crd>("crd", "get customresourcedefinitions", CRD_PATH);
  if (crd) report.add("crd", [checkCrd(crd.object)]);

  const installations = await findInstallations(reader);
  if (installations) report.add("installation", checkInstallations(installations, records, ownVersion));
  const ours = (installations ?? []).filter((each) => each.records === records);
  for (const each of ours) await addPermissions(reader, each);

  const leasePath = objectPath(LEASES, records, LEASE_NAME);
  const lease = await reader.get<Lease>("lease", `get leases in ${records}`, leasePath);
  const serverNowMs = clock.now() + (self?.offsetMs ?? 0);
  if (lease) report.add("lease", [checkLease(lease.object, records, serverNowMs)]);

  const controller = ours.find(({ component }) => component === "controller");
  const tiers = options.tiers ?? (controller && (await tiersOf(reader, controller)));
  await checkTenants(reader, records, tiers, controller?.pipeNamespaces ?? []);
}

async function addPermissions(reader: Reader, installation: Installation): Promise<void> {
  const results = await checkPermissions(reader, installation);
  const healthy = `The account of the ${installation.component}, ${userOf(installation)}, has all permissions that it needs.`;
  if (results) reader.report.addOrOk("permissions", results, healthy);
}

/** Records, and the namespaces, PipeScalings and pipes that they are about. */
async function checkTenants(
  reader: Reader,
  records: string,
  tiers: ReadonlySet<string> | undefined,
  pipeNamespaces: readonly string[],
): Promise<void> {
  const { report } = reader;
  const selection = { namespace: records, query: { labelSelector: RESOURCE_LABEL } };
  const configMaps = await reader.list<ConfigMap>("records", { resource: CONFIG_MAPS, ...selection });
  const secrets = await reader.list<Secret>("records", { resource: SECRETS, ...selection });
  const { organizations, services, keys, malformed } = readRecords(configMaps ?? [], secrets ?? [], records);
  const counts = `organizations ${organizations.length}, services ${services.length}, keys ${keys.length}`;
  if (configMaps && configMaps.length > 0) {
    report.addOrOk("records", malformed, `The records are well-formed: ${counts}.`);
  } else {
    report.add("records", malformed);
  }
  // The other checks need the records.
  if (!configMaps) return;
  if (configMaps.length === 0) report.add("records", [await withoutRecords(reader, records)]);
  if (!tiers) report.add("services", [UNKNOWN_TIERS]);

  const namespaces = await readNamespaces(
    reader,
    services.map(({ namespace }) => namespace),
  );
  const references = { organizations, services, keys, tiers, namespaces, pipeNamespaces };
  report.add("services", checkReferences(references, records));

  const byId = new Map(services.map((each) => [each.id, each]));
  const list = { resource: PIPE_SCALINGS };
  const objects = await reader.listIn<KubeObject & PipeScaling>("scalings", list, pipeNamespaces);
  const scalings = objects.map(toPipeScalingView);
  const pipes = await readPipes(reader, pipeNamespaces);
  const autoscalers = await readAutoscalers(reader, pipeNamespaces);
  const ofPipes = pipes.flatMap((pipe) => checkPipe(pipe, byId, actingOn(pipe, autoscalers)));
  report.add("scalings", [
    ...scalings.flatMap((each) => checkScaling(each, byId, records)),
    ...checkUnscaled(services, scalings, pipes),
  ]);
  if (pipes.length > 0) report.addOrOk("pipes", ofPipes, `The pipes can be resized: ${pipes.length}.`);
}

const UNKNOWN_TIERS = note(
  "Not checked: whether the tier of each organization exists, because the tiers cannot be read.",
  "Give the tiers file of the controller: --tiers-file",
);

async function withoutRecords(reader: Reader, records: string): Promise<Result> {
  const state = (await readNamespaces(reader, [records])).get(records);
  const create = `pipe-scaling admin organization create --create-namespace --name <name> --tier <tier>${recordsFlag(records)}`;
  return state === "missing"
    ? error(
        `The namespace ${records} of the records does not exist.`,
        `Name another one with --namespace, or create it with the first organization: ${create}`,
      )
    : note(`The namespace ${records} has no records yet.`, `Create the first organization: ${create}`);
}

async function readNamespaces(
  reader: Reader,
  names: readonly string[],
): Promise<ReadonlyMap<string, NamespaceState>> {
  const states = new Map<string, NamespaceState>();
  for (const name of new Set(names)) {
    const path = `/api/v1/namespaces/${encodeURIComponent(name)}`;
    const got = await reader.get<KubeObject>("services", "get namespaces", path);
    // The permission is the same for all of them.
    if (!got) return states;
    states.set(name, stateOf(got.object));
  }
  return states;
}

function stateOf(namespace: KubeObject | undefined): NamespaceState {
  if (!namespace) return "missing";
  return namespace.metadata.deletionTimestamp === undefined ? "active" : "terminating";
}

async function readPipes(reader: Reader, namespaces: readonly string[]): Promise<readonly DeploymentView[]> {
  const labelSelector = `${TYPE_LABEL}=${DATABASE_TYPE},${SERVICE_LABEL}`;
  const selection = { resource: DEPLOYMENTS, query: { labelSelector } };
  const deployments = await reader.listIn<Deployment>("pipes", selection, namespaces);
  return deployments.map(toDeploymentView).filter(({ isBeingDeleted }) => !isBeingDeleted);
}

async function readAutoscalers(
  reader: Reader,
  namespaces: readonly string[],
): Promise<readonly AutoscalerView[]> {
  type Horizontal = Parameters<typeof toHorizontalAutoscalerView>[0];
  type Vertical = Parameters<typeof toVerticalAutoscalerView>[0];
  const horizontal = { resource: HORIZONTAL_AUTOSCALERS };
  const vertical = { resource: VERTICAL_AUTOSCALERS };
  return [
    ...(await reader.listIn<Horizontal>("pipes", horizontal, namespaces)).map(toHorizontalAutoscalerView),
    ...(await reader.listIn<Vertical>("pipes", vertical, namespaces)).map(toVerticalAutoscalerView),
  ];
}

function actingOn(pipe: DeploymentView, autoscalers: readonly AutoscalerView[]): readonly AutoscalerView[] {
  const { name, namespace } = pipe.metadata;
  const container = "problem" in pipe.container ? "" : pipe.container.name;
  return autoscalers.filter(
    (each) => each.metadata.namespace === namespace && each.deployment === name && actsOn(each, container),
  );
}
