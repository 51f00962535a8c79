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
import type { ConfigMap, KubeObject, Lease, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, DEPLOYMENTS, LEASES, objectPath, SECRETS } from "../../kube/paths.ts";
import { RESOURCE_LABEL } from "../../records/labels.ts";
import type { Service } from "../../records/service.ts";
import type { Clock } from "../../runtime/clock.ts";
import { recordsFlag } from "../options.ts";
import { CRD_PATH, type Crd, checkCrd } from "./crd.ts";
import { checkInPlace, type InPlaceOptions } from "./in-place.ts";
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
import { error, note, ok, Report, type Result } from "./result.ts";
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
  report.add("server", [await checkServer(client, signal)]);

  const review = clockOffsetMs(client, clock, signal).then((offsetMs) => ({ offsetMs }));
  const self = await reader.allowed("clock", "create selfsubjectreviews", review);
  if (self) report.add("clock", [checkClock(self.offsetMs)]);

  const crd = await reader.get<Crd>("crd", "get customresourcedefinitions", CRD_PATH);
  if (crd) report.add("crd", [checkCrd(crd.object)]);

  const installations = await findInstallations(reader);
  if (installations) report.add("installation", checkInstallations(installations, records, ownVersion));
  const ours = (installations ?? []).filter((each) => each.records === records);
  for (const each of ours) await checkAccount(reader, each);

  const leasePath = objectPath(LEASES, records, LEASE_NAME);
  const lease = await reader.get<Lease>("lease", `get leases in ${records}`, leasePath);
  const serverNowMs = clock.now() + (self?.offsetMs ?? 0);
  if (lease) report.add("lease", [checkLease(lease.object, records, serverNowMs)]);

  const controller = ours.find(({ component }) => component === "controller");
  const tiers = options.tiers ?? (controller && (await tiersOf(reader, controller)));
  const pipeNamespaces = controller?.pipeNamespaces ?? [];
  const services = await checkRecords(reader, records, tiers, pipeNamespaces);
  if (services) await checkPipes(reader, records, services, controller);
}

async function checkAccount(reader: Reader, installation: Installation): Promise<void> {
  const results = await checkPermissions(reader, installation);
  if (!results) return;
  const account = `The account of the ${installation.component}, ${userOf(installation)},`;
  // A missing optional permission is only a note.
  const healthy = results.length === 0 ? [ok(`${account} has all permissions that it needs.`)] : results;
  reader.report.add("permissions", healthy);
}

/** @returns the services, or `undefined` if they cannot be read */
async function checkRecords(
  reader: Reader,
  records: string,
  tiers: ReadonlySet<string> | undefined,
  pipeNamespaces: readonly string[],
): Promise<readonly Service[] | undefined> {
  const { report } = reader;
  const selection = { namespace: records, query: { labelSelector: RESOURCE_LABEL } };
  const configMaps = await reader.list<ConfigMap>("records", { resource: CONFIG_MAPS, ...selection });
  const secrets = await reader.list<Secret>("records", { resource: SECRETS, ...selection });
  const { organizations, services, keys, malformed } = readRecords(configMaps ?? [], secrets ?? [], records);
  const counts = `organizations ${organizations.length}, services ${services.length}, keys ${keys.length}`;
  const healthy = configMaps?.length ? `The records are well-formed: ${counts}.` : undefined;
  report.add("records", malformed, healthy);
  if (!configMaps) return undefined;
  if (configMaps.length === 0) report.add("records", [await withoutRecords(reader, records)]);
  if (!tiers) {
    const message =
      "Not checked: whether the tier of each organization exists, because the tiers cannot be read.";
    report.add("services", [note(message, "Give the tiers file of the controller: --tiers-file")]);
  }
  const names = services.map(({ namespace }) => namespace);
  const namespaces = await readNamespaces(reader, names);
  const references = { organizations, services, keys, tiers, namespaces, pipeNamespaces };
  report.add("services", checkReferences(references, records));
  return services;
}

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

/** PipeScalings, pipes, and the autoscalers that act on pipes. */
async function checkPipes(
  reader: Reader,
  records: string,
  services: readonly Service[],
  controller: Installation | undefined,
): Promise<void> {
  const { report } = reader;
  const namespaces = controller?.pipeNamespaces ?? [];
  const byId = new Map(services.map((each) => [each.id, each]));
  const list = { resource: PIPE_SCALINGS };
  const objects = await reader.listIn<KubeObject & PipeScaling>("scalings", list, namespaces);
  const scalings = objects.map(toPipeScalingView);
  const labelSelector = `${TYPE_LABEL}=${DATABASE_TYPE},${SERVICE_LABEL}`;
  const selection = { resource: DEPLOYMENTS, query: { labelSelector } };
  const deployments = await reader.listIn<InPlaceOptions["deployments"][number]>(
    "pipes",
    selection,
    namespaces,
  );
  const pipes = deployments.map(toDeploymentView).filter(({ isBeingDeleted }) => !isBeingDeleted);
  const autoscalers = await readAutoscalers(reader, namespaces);
  const results = pipes.flatMap((pipe) => checkPipe(pipe, byId, actingOn(pipe, autoscalers)));
  report.add("scalings", [
    ...scalings.flatMap((each) => checkScaling(each, byId, records) ?? []),
    ...checkUnscaled(services, scalings, pipes),
  ]);
  if (pipes.length > 0) report.add("pipes", results, `The pipes can be resized: ${pipes.length}.`);
  await checkInPlace(reader, { controller, services: byId, scalings, deployments });
}

async function readAutoscalers(reader: Reader, namespaces: readonly string[]): Promise<AutoscalerView[]> {
  type Horizontal = Parameters<typeof toHorizontalAutoscalerView>[0];
  type Vertical = Parameters<typeof toVerticalAutoscalerView>[0];
  const [horizontal, vertical] = [{ resource: HORIZONTAL_AUTOSCALERS }, { resource: VERTICAL_AUTOSCALERS }];
  return [
    ...(await reader.listIn<Horizontal>("pipes", horizontal, namespaces)).map(toHorizontalAutoscalerView),
    ...(await reader.listIn<Vertical>("pipes", vertical, namespaces)).map(toVerticalAutoscalerView),
  ];
}

function actingOn({ metadata, container }: DeploymentView, autoscalers: readonly AutoscalerView[]) {
  const containerName = "problem" in container ? "" : container.name;
  return autoscalers.filter(
    (each) =>
      each.metadata.namespace === metadata.namespace &&
      each.deployment === metadata.name &&
      actsOn(each, containerName),
  );
}
