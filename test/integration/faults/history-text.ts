import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { ownedLeaves } from "../../e2e/demo/ownership.ts";
import { type Entry, inOrder, type Kinds, versionOf } from "./history.ts";
import { hasOurAnnotation, isPausedForCommit, pipeContainer, replicasOf } from "./pipe-view.ts";
import { sizeIn, sizeOf } from "./sized-object.ts";

/** Formats a history for the analysis of a failure, with one line for each version of an object. */
export function historyText(entries: readonly Entry[]): string {
  return inOrder(entries)
    .flatMap((entry) => {
      const text = textOf(entry);
      return text === undefined ? [] : `${versionOf(entry)} ${text}`;
    })
    .join("\n");
}

function textOf(entry: Entry): string | undefined {
  switch (entry.type) {
    case "accepted":
      return `accepted ${entry.size} for ${entry.serviceId}`;
    case "limited":
      return `sizes of ${entry.serviceId} above ${entry.mostCores} cores are refused`;
    case "gap":
      return `gap of ${entry.kind} since ${entry.after}`;
    case "seen":
    case "gone":
      if (entry.kind === "Deployment") return `${entry.type} ${pipeText(entry.object)}`;
      if (entry.kind === "ReplicaSet") return `${entry.type} ReplicaSet ${sizedText(entry.object)}`;
      if (entry.kind === "Pod")
        return `${entry.type} pod ${sizedText(entry.object)}, ${podText(entry.object)}`;
      if (entry.kind === "PipeScaling") return `${entry.type} ${scalingText(entry.object)}`;
      return undefined;
  }
}

function pipeText(pipe: Kinds["Deployment"]): string {
  const { namespace, name, uid, generation = 0 } = pipe.metadata;
  const { observedGeneration, replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = pipe.status ?? {};
  const owned = ownedLeaves(pipe, CONTROLLER_FIELD_MANAGER).map((leaf) =>
    leaf.split(".").slice(-2).join("."),
  );
  return [
    `${namespace}/${name} (${uid.slice(0, 8)})`,
    sizeIn(pipe, pipeContainer(pipe)),
    `generation ${generation} seen ${observedGeneration}`,
    `replicas ${replicasOf(pipe)}: ${replicas}/${updatedReplicas}/${availableReplicas}`,
    hasOurAnnotation(pipe) ? "annotated" : "",
    pauseText(pipe),
    `ours: ${owned.join(" ")}`,
  ].join(", ");
}

function pauseText(pipe: Kinds["Deployment"]): string {
  if (!pipe.spec.paused) return "";
  return isPausedForCommit(pipe) ? "paused by us" : "paused";
}

/** Includes the sizes of all containers, because only the Deployment names that of the pipe. */
function sizedText(object: Kinds["ReplicaSet" | "Pod"]): string {
  const { namespace, name, uid, deletionTimestamp } = object.metadata;
  const { containers } = "template" in object.spec ? object.spec.template.spec : object.spec;
  const sizes = containers.map((each) => sizeOf(each.resources)).join(" + ");
  const replicas = "template" in object.spec ? `, replicas ${object.spec.replicas}` : "";
  const end = deletionTimestamp === undefined ? "" : ", ends";
  return `${namespace}/${name} (${uid.slice(0, 8)}), ${sizes}${replicas}${end}`;
}

function podText({ metadata, status = {} }: Kinds["Pod"]): string {
  const { conditions = [], containerStatuses = [], observedGeneration } = status;
  const resize = conditions.find(({ type }) => type.startsWith("PodResize"));
  return [
    `generation ${metadata.generation} seen ${observedGeneration}`,
    `runs ${containerStatuses.map((each) => sizeOf(each.resources)).join(" + ")}`,
    resize ? `${resize.type} ${resize.reason ?? ""}` : "",
  ].join(", ");
}

function scalingText({ metadata, spec, status }: Kinds["PipeScaling"]): string {
  const { namespace, name, uid, generation, managedFields = [] } = metadata;
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const managers = managedFields.map(({ manager }) => manager).join(" ");
  return `PipeScaling ${namespace}/${name} (${uid.slice(0, 8)}), generation ${generation} seen ${status?.observedGeneration}, ${JSON.stringify(spec)}, Ready ${ready?.status} ${ready?.reason}, by ${managers}`;
}
