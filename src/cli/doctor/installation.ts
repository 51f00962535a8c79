import type { V1DeploymentSpec, V1DeploymentStatus } from "@kubernetes/client-node";
import { parseDocument } from "yaml";
import { RESIZE_STRATEGIES, type ResizeStrategy } from "../../domain/resize-strategy.ts";
import type { ConfigMap, KubeObject, Lease } from "../../kube/objects.ts";
import { CONFIG_MAPS, DEPLOYMENTS, objectPath } from "../../kube/paths.ts";
import { DEFAULT_RECORDS_NAMESPACE } from "../../settings/cluster.ts";
import { roughly } from "../view/time.ts";
import type { Component } from "./permissions.ts";
import type { Reader } from "./reader.ts";
import { error, note, ok, type Result, warning } from "./result.ts";

/** A Deployment of one of the processes, as the chart makes it. */
export interface Installation {
  readonly component: Component;
  readonly namespace: string;
  readonly name: string;
  /** Its ServiceAccount. */
  readonly account: string;
  /** Namespace of its records. */
  readonly records: string;
  /** Namespaces in which it looks for pipes; empty for all. */
  readonly pipeNamespaces: readonly string[];
  readonly replicas: number;
  readonly ready: number;
  /** Pods of the newest template. */
  readonly updated: number;
  readonly version: string | undefined;
  /** How it resizes pipes of a PipeScaling without a strategy. */
  readonly resizeStrategy: ResizeStrategy | undefined;
  /** Name of the ConfigMap of the tiers. */
  readonly tiers: string | undefined;
}

const COMPONENT = "app.kubernetes.io/component";
const PART_OF = "app.kubernetes.io/part-of";
const VERSION = "app.kubernetes.io/version";
const PRODUCT = "pipe-scaling-operator";

interface ProcessDeployment extends KubeObject {
  readonly spec: V1DeploymentSpec;
  readonly status?: V1DeploymentStatus;
}

/** The processes in any namespace; `undefined` without the permission. */
export async function findInstallations(reader: Reader): Promise<readonly Installation[] | undefined> {
  const labelSelector = `${COMPONENT} in (api, controller)`;
  const selection = { resource: DEPLOYMENTS, query: { labelSelector } };
  const deployments = await reader.list<ProcessDeployment>("installation", selection);
  return deployments?.flatMap((each) => installationOf(each) ?? []);
}

function installationOf({ metadata, spec, status }: ProcessDeployment): Installation | undefined {
  const { template, replicas = 1 } = spec;
  const component = metadata.labels?.[COMPONENT];
  if (template.metadata?.labels?.[PART_OF] !== PRODUCT) return undefined;
  if (component !== "api" && component !== "controller") return undefined;
  const { containers = [], volumes = [], serviceAccountName = "default" } = template.spec ?? {};
  const env = containers.flatMap((container) => container.env ?? []);
  const variable = (name: string) => env.find((each) => each.name === name)?.value || undefined;
  return {
    component,
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    account: serviceAccountName,
    records: variable("PIPE_SCALING_NAMESPACE") ?? DEFAULT_RECORDS_NAMESPACE,
    pipeNamespaces: variable("PIPE_SCALING_PIPE_NAMESPACES")?.split(",") ?? [],
    resizeStrategy: RESIZE_STRATEGIES.find((each) => each === variable("PIPE_SCALING_RESIZE_STRATEGY")),
    replicas,
    ready: status?.readyReplicas ?? 0,
    updated: status?.updatedReplicas ?? 0,
    version: metadata.labels?.[VERSION],
    tiers: volumes.flatMap(({ configMap }) => configMap?.name ?? [])[0],
  };
}

const LOST: Readonly<Record<Component, string>> = {
  api: "no size can be requested by HTTP",
  controller: "nothing is resized",
};

/** Checks that both processes are installed and ready. */
export function checkInstallations(
  installations: readonly Installation[],
  records: string,
  ownVersion: string,
): Result[] {
  if (installations.length === 0) {
    return [
      note(
        `No Deployment has the labels of the chart (${PART_OF}=${PRODUCT}): pods and permissions were not checked.`,
        "Install the chart, unless the two processes run outside of this cluster.",
      ),
    ];
  }
  const ours = installations.filter((each) => each.records === records);
  const others = new Set(installations.map((each) => each.records).filter((each) => each !== records));
  const missing = (["api", "controller"] as const).filter(
    (component) => ours.length > 0 && !ours.some((each) => each.component === component),
  );
  return [
    ...[...others].map((namespace) =>
      (ours.length === 0 ? error : note)(
        `An installation uses the records of the namespace ${namespace}, not those of ${records}.`,
        `Check it, too: pipe-scaling doctor --namespace ${namespace}`,
      ),
    ),
    ...missing.map((component) =>
      error(
        `The ${component} is not installed, so ${LOST[component]}.`,
        "Install the whole chart: helm upgrade --install",
      ),
    ),
    ...ours.flatMap((each) => [checkReadiness(each), checkVersion(each, ownVersion) ?? []].flat()),
  ];
}

function checkReadiness({ component, namespace, name, ready, updated, replicas }: Installation): Result {
  const deployment = `${namespace}/${name}`;
  if (replicas === 0) {
    return error(
      `The ${component} is scaled to zero (${deployment}), so ${LOST[component]}.`,
      `kubectl scale deployment ${name} --namespace ${namespace} --replicas 2`,
    );
  }
  const pods = `${ready} of ${replicas} ${replicas === 1 ? "pod" : "pods"}`;
  if (ready < replicas) {
    return (ready === 0 ? error : warning)(
      `The ${component} is not ready: ${pods} of ${deployment}.`,
      `kubectl describe pods --namespace ${namespace} --selector ${COMPONENT}=${component}; kubectl logs deployment/${name} --namespace ${namespace}`,
    );
  }
  if (updated === replicas) return ok(`The ${component} is ready: ${pods} of ${deployment}.`);
  return note(
    `A rollout of the ${component} is in progress: ${updated} of ${replicas} pods of ${deployment} are updated.`,
    `If it does not complete: kubectl describe deployment ${name} --namespace ${namespace}`,
  );
}

function checkVersion({ component, version }: Installation, ownVersion: string): Result | undefined {
  if (version === undefined || version === ownVersion) return undefined;
  return warning(
    `The ${component} has version ${version}, and this program ${ownVersion}, so its checks may not apply.`,
    `Use pipe-scaling ${version}, or upgrade the installation.`,
  );
}

/** Names of the tiers of an installed controller; `undefined` if its ConfigMap cannot be read. */
export async function tiersOf(
  reader: Reader,
  { namespace, tiers }: Installation,
): Promise<ReadonlySet<string> | undefined> {
  if (tiers === undefined) return undefined;
  const path = objectPath(CONFIG_MAPS, namespace, tiers);
  const got = await reader.get<ConfigMap>("services", `get configmaps in ${namespace} (the tiers)`, path);
  const known: unknown = parseDocument(got?.object?.data?.["tiers.yaml"] ?? "").toJS({ maxAliasCount: 0 });
  return typeof known === "object" && known !== null ? new Set(Object.keys(known)) : undefined;
}

const FIND_CONTROLLER = `Check why no controller runs: kubectl get pods --all-namespaces --selector ${PART_OF}=${PRODUCT}`;

/** @param nowMs by the clock of the API server, the closest to those of the controllers */
export function checkLease(lease: Lease | undefined, namespace: string, nowMs: number): Result {
  if (!lease) {
    return error(
      `There is no Lease in ${namespace}: no controller has run with these records yet, and nothing is resized.`,
      FIND_CONTROLLER,
    );
  }
  const { name } = lease.metadata;
  const { holderIdentity = "", renewTime, leaseDurationSeconds = 15 } = lease.spec ?? {};
  const agoMs = nowMs - Date.parse(renewTime ?? "");
  if (holderIdentity === "") {
    return error(
      `No controller holds the Lease ${name}: the last one released it ${roughly(agoMs)} ago, and nothing is resized.`,
      FIND_CONTROLLER,
    );
  }
  if (Number.isNaN(agoMs) || agoMs > 2000 * leaseDurationSeconds) {
    const renewed = Number.isNaN(agoMs) ? "never renewed it" : `last renewed it ${roughly(agoMs)} ago`;
    return error(
      `The controller ${holderIdentity} holds the Lease ${name} but ${renewed}, so nothing is resized.`,
      FIND_CONTROLLER,
    );
  }
  return ok(`The controller ${holderIdentity} is the leader; it renewed its lease ${roughly(agoMs)} ago.`);
}
