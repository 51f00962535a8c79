import { type Identity, identityOf, type KubeObject, type ReplicaSet } from "../../kube/objects.ts";
import { parseTime } from "../../kube/time.ts";
import { REVISION_ANNOTATION } from "../names.ts";
import { type TemplateView, toTemplateView } from "./template-view.ts";

/** The fields of a ReplicaSet that in-place resizes need. */
export interface ReplicaSetView extends KubeObject, TemplateView {
  readonly metadata: Identity;
  /** UID of its Deployment. */
  readonly deploymentUid: string | undefined;
  /** In whole seconds since 1970, as Kubernetes compares them. */
  readonly createdAtS: number;
  readonly revision: number;
  /** Pods that it has or wants. */
  readonly pods: number;
}

export function toReplicaSetView({ metadata, spec, status }: ReplicaSet): ReplicaSetView {
  return {
    metadata: identityOf(metadata),
    deploymentUid: metadata.ownerReferences?.find(({ kind }) => kind === "Deployment")?.uid,
    createdAtS: Math.floor(parseTime(metadata.creationTimestamp) / 1000),
    revision: Number.parseInt(metadata.annotations?.[REVISION_ANNOTATION] ?? "", 10) || 0,
    pods: Math.max(spec.replicas ?? 1, status?.replicas ?? 0),
    ...toTemplateView(spec.template),
  };
}
