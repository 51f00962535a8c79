import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { ownedLeaves } from "../../e2e/demo/ownership.ts";
import { type Entry, inOrder, type Kinds, versionOf } from "./history.ts";
import { hasOurAnnotation, pipeContainer, replicasOf, sizeIn } from "./pipe-view.ts";

/** A history for people who look for the cause of a failure, one line for each version of a pipe or PipeScaling. */
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
    case "gap":
      return `gap of ${entry.kind} since ${entry.after}`;
    case "seen":
    case "gone":
      if (entry.kind === "Deployment") return `${entry.type} ${pipeText(entry.object)}`;
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
    sizeIn(pipe.spec.template, pipeContainer(pipe)),
    `generation ${generation} seen ${observedGeneration}`,
    `replicas ${replicasOf(pipe)}: ${replicas}/${updatedReplicas}/${availableReplicas}`,
    hasOurAnnotation(pipe) ? "annotated" : "",
    `ours: ${owned.join(" ")}`,
  ].join(", ");
}

function scalingText({ metadata, spec, status }: Kinds["PipeScaling"]): string {
  const { namespace, name, uid, generation, managedFields = [] } = metadata;
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const managers = managedFields.map(({ manager }) => manager).join(" ");
  return `PipeScaling ${namespace}/${name} (${uid.slice(0, 8)}), generation ${generation} seen ${status?.observedGeneration}, ${JSON.stringify(spec)}, Ready ${ready?.status} ${ready?.reason}, by ${managers}`;
}
