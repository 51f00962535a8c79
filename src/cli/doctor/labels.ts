import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  LAST_ROLLOUT_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../controller/names.ts";
import { GROUP } from "../../crd/names.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Cluster, Labeled } from "./cluster.ts";
import { type Result, warning } from "./result.ts";

const LABELS = `${SERVICE_LABEL}=<id of the service> and ${TYPE_LABEL}=${DATABASE_TYPE}`;

/** Finds workloads that look like pipes but that no controller sees, and unknown annotations of pipes. */
export async function checkLabels(cluster: Cluster): Promise<Result[]> {
  const controller = await cluster.controller();
  const controllers = await cluster.controllers();
  // A controller that is not found may run outside the cluster and watch any namespace.
  const isWatched = (namespace = "") =>
    !controller || controllers.some(({ pipeNamespaces: all }) => all.length === 0 || all.includes(namespace));
  return (await cluster.labeled()).flatMap((workload) => {
    const { kind, metadata } = workload;
    const { name, namespace } = metadata;
    const problem = labelProblem(workload);
    if (problem !== undefined) {
      const label = cluster.kubectl(
        `label ${kind.toLowerCase()} ${name} --namespace ${namespace} --overwrite ${SERVICE_LABEL}=<id> ${TYPE_LABEL}=${DATABASE_TYPE}`,
      );
      return [
        warning(
          `The ${kind} ${namespace}/${name} ${problem}, so it is not a pipe and is not resized.`,
          `If it is a pipe, set both labels ${LABELS}: \`${label}\`; otherwise remove them.`,
        ),
      ];
    }
    if (!isPipe(metadata.labels)) return [];
    if (isWatched(namespace)) return unknownAnnotations(cluster, workload);
    return [
      warning(
        `The pipe ${namespace}/${name} is in a namespace that no controller watches, so it is not resized.`,
        `helm upgrade with ${namespace} in pipes.namespaces, or move the pipe to one of: ${controller?.pipeNamespaces.join(", ")}.`,
      ),
    ];
  });
}

const ANNOTATIONS: readonly string[] = [CONTAINER_ANNOTATION, LAST_ROLLOUT_ANNOTATION];

function unknownAnnotations(cluster: Cluster, { kind, metadata }: Labeled): Result[] {
  const { name, namespace, annotations = {} } = metadata;
  const unknown = Object.keys(annotations).filter(
    (key) => key.startsWith(`${GROUP}/`) && !ANNOTATIONS.includes(key),
  );
  return unknown.map((key) => {
    const removal = cluster.kubectl(
      `annotate ${kind.toLowerCase()} ${name} --namespace ${namespace} ${key}-`,
    );
    return warning(
      `The pipe ${namespace}/${name} has the annotation ${key}, which has no effect.`,
      `To name the container to resize, use the annotation ${CONTAINER_ANNOTATION}. Remove this one: ${removal}`,
    );
  });
}

function isPipe(labels: KubeObject["metadata"]["labels"] = {}): boolean {
  return SERVICE_LABEL in labels && labels[TYPE_LABEL] === DATABASE_TYPE;
}

/** Returns what is wrong with the labels, such as the key `pipes.clouddb.dev/typ`; `undefined` if nothing is. */
function labelProblem({ metadata: { labels = {} }, podLabels }: Labeled): string | undefined {
  const own = Object.keys(labels).filter((key) => key.startsWith(`${GROUP}/`));
  if (own.length === 0)
    return isPipe(podLabels) ? "has the labels of a pipe only in its pod template" : undefined;
  if (isPipe(labels)) return undefined;
  const unknown = own.filter((key) => key !== SERVICE_LABEL && key !== TYPE_LABEL);
  if (unknown.length > 0) {
    const verb = unknown.length === 1 ? "which is not a label" : "which are not labels";
    return `has ${unknown.map((key) => `${key}=${labels[key]}`).join(", ")}, ${verb} of pipes`;
  }
  const type = labels[TYPE_LABEL];
  if (type === undefined) return `has the label ${SERVICE_LABEL}, but not ${TYPE_LABEL}=${DATABASE_TYPE}`;
  if (type !== DATABASE_TYPE) {
    // Other types are deliberate.
    return isNear(type.toLowerCase(), DATABASE_TYPE)
      ? `has the label ${TYPE_LABEL}=${type} instead of ${DATABASE_TYPE}`
      : undefined;
  }
  return `has the label ${TYPE_LABEL}=${type}, but not ${SERVICE_LABEL}`;
}

/** True if few characters differ: at most three of eight are missing, added or wrong. */
function isNear(text: string, word: string): boolean {
  let row = Array.from({ length: word.length + 1 }, (_, at) => at);
  for (const [at, character] of [...text].entries()) {
    const next = [at + 1];
    for (let to = 1; to <= word.length; to += 1) {
      const replaced = (row[to - 1] ?? 0) + (word[to - 1] === character ? 0 : 1);
      next.push(Math.min(replaced, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    row = next;
  }
  return (row[word.length] ?? 0) <= MAX_TYPOS;
}

const MAX_TYPOS = 3;
