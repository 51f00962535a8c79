import { parseDocument } from "yaml";
import type { ConfigMap, KubeObject } from "../../kube/objects.ts";
import { CONFIG_MAPS, DEPLOYMENTS, objectPath } from "../../kube/paths.ts";
import { DEFAULT_RECORDS_NAMESPACE } from "../../settings/cluster.ts";
import type { Finding } from "./finding.ts";
import type { Reader } from "./reader.ts";
import type { Component } from "./rights.ts";

/** A Deployment of one of the processes, as the chart makes it. */
export interface Installation {
  readonly component: Component;
  readonly namespace: string;
  readonly name: string;
  /** Its ServiceAccount. */
  readonly account: string;
  /** Namespace of the records that it works by. */
  readonly records: string;
  /** Where it looks for pipes; empty for all. */
  readonly pipeNamespaces: readonly string[];
  readonly replicas: number;
  readonly ready: number;
  /** Pods of the newest template. */
  readonly updated: number;
  readonly version: string | undefined;
  /** ConfigMap of the tiers. */
  readonly tiers: string | undefined;
}

const COMPONENT = "app.kubernetes.io/component";
const PART_OF = "app.kubernetes.io/part-of";
const VERSION = "app.kubernetes.io/version";
const PRODUCT = "pipe-scaling-operator";

interface ProcessDeployment extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly template: {
      readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
      readonly spec: {
        readonly serviceAccountName?: string;
        readonly containers: readonly {
          readonly env?: readonly { readonly name: string; readonly value?: string }[];
        }[];
        readonly volumes?: readonly { readonly configMap?: { readonly name?: string } }[];
      };
    };
  };
  readonly status?: { readonly readyReplicas?: number; readonly updatedReplicas?: number };
}

/** The processes that are installed, in whatever namespace; `undefined` where they may not be looked for. */
export async function findInstallations(reader: Reader): Promise<readonly Installation[] | undefined> {
  const labelSelector = `${COMPONENT} in (api, controller)`;
  const selection = { resource: DEPLOYMENTS, labelSelector };
  const deployments = await reader.list<ProcessDeployment>("installation", selection);
  return deployments?.flatMap((each) => installationOf(each) ?? []);
}

function installationOf({ metadata, spec, status }: ProcessDeployment): Installation | undefined {
  const { template, replicas = 1 } = spec;
  const component = metadata.labels?.[COMPONENT];
  if (template.metadata?.labels?.[PART_OF] !== PRODUCT) return undefined;
  if (component !== "api" && component !== "controller") return undefined;
  const env = template.spec.containers.flatMap((container) => container.env ?? []);
  const variable = (name: string) => env.find((each) => each.name === name)?.value || undefined;
  return {
    component,
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    account: template.spec.serviceAccountName ?? "default",
    records: variable("PIPE_SCALING_NAMESPACE") ?? DEFAULT_RECORDS_NAMESPACE,
    pipeNamespaces: variable("PIPE_SCALING_PIPE_NAMESPACES")?.split(",") ?? [],
    replicas,
    ready: status?.readyReplicas ?? 0,
    updated: status?.updatedReplicas ?? 0,
    version: metadata.labels?.[VERSION],
    tiers: template.spec.volumes?.flatMap(({ configMap }) => configMap?.name ?? [])[0],
  };
}

/** Whether each of the two processes is there and ready. */
export function examineInstallations(
  installations: readonly Installation[],
  records: string,
  ownVersion: string,
): Finding[] {
  if (installations.length === 0) {
    return [
      {
        severity: "note",
        check: "installation",
        message: `No Deployment has the labels of the chart (${PART_OF}=${PRODUCT}): neither its pods nor its permissions were looked at.`,
        remedy: "Install the chart, unless the two processes run outside of this cluster.",
      },
    ];
  }
  const ours = installations.filter((each) => each.records === records);
  const others = new Set(installations.map((each) => each.records).filter((each) => each !== records));
  return [
    ...[...others].map(
      (each): Finding => ({
        severity: ours.length === 0 ? "error" : "note",
        check: "installation",
        message: `There is an installation that works by the records of the namespace ${each}, and these are those of ${records}.`,
        remedy: `Look at the others too: doctor --namespace ${each}`,
      }),
    ),
    ...(["api", "controller"] as const).flatMap((component) => missing(component, ours)),
    ...ours.flatMap((each) => [...ofReadiness(each), ...ofVersion(each, ownVersion)]),
  ];
}

function missing(component: Component, ours: readonly Installation[]): Finding[] {
  if (ours.length === 0 || ours.some((each) => each.component === component)) return [];
  const what = component === "api" ? "nobody can ask for a size by HTTP" : "nothing is resized";
  return [
    {
      severity: "error",
      check: "installation",
      message: `The ${component} is not installed, so ${what}.`,
      remedy: "Install the chart as a whole: helm upgrade --install.",
    },
  ];
}

function ofReadiness({ component, namespace, name, ready, updated, replicas }: Installation): Finding[] {
  const check = "installation";
  const pods = `${ready} of ${replicas} ${replicas === 1 ? "pod" : "pods"}`;
  if (replicas > 0 && ready >= replicas && updated < replicas) {
    return [
      {
        severity: "note",
        check,
        message: `The ${component} is being rolled out: ${updated} of ${replicas} pods of ${namespace}/${name} are new.`,
        remedy: `If that lasts, kubectl describe deployment ${name} --namespace ${namespace} says why.`,
      },
    ];
  }
  if (replicas > 0 && ready >= replicas) {
    return [
      { severity: "ok", check, message: `The ${component} is ready: ${pods} of ${namespace}/${name}.` },
    ];
  }
  return [
    {
      severity: ready === 0 ? "error" : "warning",
      check,
      message:
        replicas === 0
          ? `The ${component} is scaled to nothing (${namespace}/${name}).`
          : `The ${component} is not ready: ${pods} of ${namespace}/${name}.`,
      remedy:
        replicas === 0
          ? `kubectl scale deployment ${name} --namespace ${namespace} --replicas 2`
          : `kubectl describe pods --namespace ${namespace} --selector ${COMPONENT}=${component} says why, and kubectl logs deployment/${name} --namespace ${namespace} what it says itself.`,
    },
  ];
}

function ofVersion({ component, version }: Installation, ownVersion: string): Finding[] {
  if (version === undefined || version === ownVersion) return [];
  return [
    {
      severity: "warning",
      check: "installation",
      message: `The ${component} is of version ${version}, and this program of ${ownVersion}: it may judge by other rules.`,
      remedy: `Use pipe-scaling ${version}, or upgrade the installation.`,
    },
  ];
}

/** Names of the tiers that an installed controller knows, as far as its ConfigMap can be read. */
export async function tiersOf(
  reader: Reader,
  { namespace, tiers }: Installation,
): Promise<ReadonlySet<string> | undefined> {
  if (tiers === undefined) return undefined;
  const path = objectPath(CONFIG_MAPS, namespace, tiers);
  const got = await reader.get<ConfigMap>(
    "services",
    `get configmaps in ${namespace}, where the tiers are`,
    path,
  );
  const known: unknown = parseDocument(got?.object?.data?.["tiers.yaml"] ?? "").toJS({ maxAliasCount: 0 });
  return typeof known === "object" && known !== null ? new Set(Object.keys(known)) : undefined;
}
