import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../controller/names.ts";
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
import type { ConfigMap, Deployment, KubeObject, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, DEPLOYMENTS, SECRETS } from "../../kube/paths.ts";
import { RESOURCE_LABEL } from "../../records/labels.ts";
import { recordsFlag } from "../common-options.ts";
import { type Finding, okUnless } from "./finding.ts";
import { examinePipe, examineScaling, examineUnscaled } from "./pipes.ts";
import type { Reader } from "./reader.ts";
import { readKeys, readRecords } from "./records.ts";
import { examineReferences, type NamespaceState, stateOf } from "./references.ts";

export interface TenantsScope {
  /** Namespace of the records. */
  readonly records: string;
  /** Names of the tiers, where they are known. */
  readonly tiers: ReadonlySet<string> | undefined;
  /** Where the controller looks for pipes; empty for all. */
  readonly pipeNamespaces: readonly string[];
}

/** The records, and what they are about: namespaces, PipeScalings, pipes and what else acts on these. */
export async function examineTenants(reader: Reader, scope: TenantsScope): Promise<void> {
  const { findings } = reader;
  const { records, tiers, pipeNamespaces } = scope;
  const selection = { namespace: records, labelSelector: RESOURCE_LABEL };
  const maps = await reader.list<ConfigMap>("records", { resource: CONFIG_MAPS, ...selection });
  const secrets = await reader.list<Secret>("records", { resource: SECRETS, ...selection });
  const { keys, findings: ofKeys } = readKeys(secrets ?? [], records);
  findings.add(...ofKeys);
  // Without the records nothing can be said of what they are about.
  if (!maps) return;
  if (maps.length === 0) findings.add(await withoutRecords(reader, records));
  const { organizations, services, findings: ofMaps } = readRecords(maps, records);
  const well = `The records are well-formed: organizations ${organizations.length}, services ${services.length}, keys ${keys.length}.`;
  findings.add(...ofMaps);
  if (maps.length > 0) findings.add(...okUnless([...ofMaps, ...ofKeys], "records", well));
  if (!tiers) findings.add(WITHOUT_TIERS);
  const namespaces = await readNamespaces(reader, services);
  findings.add(
    ...examineReferences({ organizations, services, keys, tiers, namespaces, pipeNamespaces }, records),
  );
  const byId = new Map(services.map((each) => [each.id, each]));
  const scalings = await readScalings(reader, pipeNamespaces);
  const pipes = await readPipes(reader, pipeNamespaces);
  const autoscalers = await readAutoscalers(reader, pipeNamespaces);
  const ofPipes = pipes.flatMap((pipe) => examinePipe(pipe, byId, actingOn(pipe, autoscalers)));
  findings.add(
    ...scalings.flatMap((each) => examineScaling(each, byId, records)),
    ...examineUnscaled(services, scalings, pipes),
    ...ofPipes,
  );
  if (pipes.length > 0)
    findings.add(...okUnless(ofPipes, "pipes", `The pipes can be resized: ${pipes.length}.`));
}

const WITHOUT_TIERS: Finding = {
  severity: "note",
  check: "services",
  message: "Not looked at: whether each organization's tier is there, for the tiers are not known.",
  remedy: "Name the controller's file of tiers: --tiers-file",
};

async function withoutRecords(reader: Reader, records: string): Promise<Finding> {
  const state = (await readNamespaces(reader, [{ namespace: records }])).get(records);
  const make = "pipe-scaling admin organization create --create-namespace --name <name> --tier <tier>";
  const where = recordsFlag(records);
  return state === "missing"
    ? {
        severity: "error",
        check: "records",
        message: `There is no namespace ${records} for the records.`,
        remedy: `Name another one with --namespace, or make it with the first organization: ${make}${where}`,
      }
    : {
        severity: "note",
        check: "records",
        message: `There is no record in the namespace ${records} yet.`,
        remedy: `Make the first organization: ${make}${where}`,
      };
}

async function readNamespaces(
  reader: Reader,
  services: readonly { readonly namespace: string }[],
): Promise<ReadonlyMap<string, NamespaceState>> {
  const states = new Map<string, NamespaceState>();
  for (const name of new Set(services.map(({ namespace }) => namespace))) {
    const path = `/api/v1/namespaces/${encodeURIComponent(name)}`;
    const got = await reader.get<KubeObject>("services", "get namespaces", path);
    // Who may not look at one may not look at another.
    if (!got) return states;
    states.set(name, stateOf(got.object));
  }
  return states;
}

async function readScalings(reader: Reader, namespaces: readonly string[]) {
  const selection = { resource: PIPE_SCALINGS };
  const scalings = await reader.listIn<KubeObject & PipeScaling>("scalings", selection, namespaces);
  return scalings.map(toPipeScalingView);
}

async function readPipes(reader: Reader, namespaces: readonly string[]): Promise<readonly DeploymentView[]> {
  const selection = {
    resource: DEPLOYMENTS,
    labelSelector: `${TYPE_LABEL}=${DATABASE_TYPE},${SERVICE_LABEL}`,
  };
  const deployments = await reader.listIn<Deployment>("pipes", selection, namespaces);
  return deployments.map(toDeploymentView).filter(({ isBeingDeleted }) => !isBeingDeleted);
}

/** Not every cluster knows vertical ones. */
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
    (autoscaler) =>
      autoscaler.metadata.namespace === namespace &&
      autoscaler.deployment === name &&
      actsOn(autoscaler, container),
  );
}
