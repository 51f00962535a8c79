import {
  LAST_ROLLOUT_ANNOTATION,
  REVISION_ANNOTATION,
  SERVICE_LABEL,
} from "../../../src/controller/names.ts";
import type { PipeView } from "../../../src/controller/observe/pipe-view.ts";
import { formatAllotment } from "../../../src/controller/observe/resources.ts";
import { toPipeView } from "../../../src/controller/observe/workloads/deployment.ts";
import type { Condition, PipeScaling } from "../../../src/crd/pipe-scaling.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import { fieldPath, OWNER, type Writer } from "./managed-fields.ts";
import { found, parsed, timeAt } from "./objects.ts";
import { patched } from "./patch.ts";
import { completeStatus } from "./rollouts.ts";
import { ClusterState } from "./state.ts";
import { created, type Manifest } from "./workload-writes.ts";

type Spec = Deployment["spec"];
type Labels = Readonly<Record<string, string | null>>;

const USER: Writer = { manager: "user" };

/** The actions of owners of Deployments, and of users of PipeScalings. */
export class OwnedCluster extends ClusterState {
  pipe(name: string): PipeView {
    return toPipeView(found(this.deployments, name));
  }

  /** The size of the pipe's container, in the format of the annotation. */
  sizeOf(name: string): string {
    const { size, otherResources } = this.pipe(name);
    const allotment = size ?? otherResources;
    return allotment ? formatAllotment(allotment) : "unclear";
  }

  /** Creates a Deployment whose pods are running. */
  deploy(made: Pick<Deployment, "spec"> & Manifest): void {
    const { replicas = 1 } = made.spec;
    const annotations = { ...made.metadata.annotations, [REVISION_ANNOTATION]: "1" };
    const status = completeStatus(replicas, timeAt(this.clock.now()));
    const object = { ...made, metadata: { ...made.metadata, annotations }, status };
    this.put(created(object, this.by(OWNER)), OWNER);
    this.workloads?.changed(made.metadata.name);
  }

  remove(name: string): void {
    this.gone(found(this.deployments, name));
  }

  /** The owner deletes the Deployment, which a finalizer keeps. */
  beginRemoval(name: string): void {
    const before = found(this.deployments, name);
    const deletionTimestamp = timeAt(this.clock.now());
    this.put(
      { ...before, metadata: { ...before.metadata, deletionTimestamp, resourceVersion: this.next() } },
      OWNER,
    );
  }

  /** The owner changes the Deployment, and its pods are replaced if the template changes. */
  change(name: string, patch: Partial<Record<keyof Spec, unknown>>, writer = OWNER): void {
    const before = found(this.deployments, name);
    if (patch.replicas === 0) this.judge.stopped(name);
    this.#writeSpec(before, parsed(patched(before.spec, patch, true)), writer);
  }

  /** The owner applies a manifest with the pause (server-side apply), and so owns the field too. */
  applyPause(name: string): void {
    const before = found(this.deployments, name);
    const writer: Writer = { ...OWNER, operation: "Apply" };
    this.write({ ...before, spec: { ...before.spec, paused: true } }, writer, [
      fieldPath("f:spec", "f:paused"),
    ]);
  }

  /** The owner sets parts of the spec as a whole. */
  setSpec(name: string, parts: Partial<Spec>, writer = OWNER): void {
    const before = found(this.deployments, name);
    this.#writeSpec(before, { ...before.spec, ...parts }, writer);
  }

  /** Sets labels of the Deployment; `null` removes one. */
  setLabels(name: string, labels: Labels): void {
    const before = found(this.deployments, name);
    this.write(parsed(patched(before, { metadata: { labels } }, true)), OWNER);
  }

  /** The pipe belongs to another service from now on. Its pods keep their labels. */
  move(name: string, serviceId: string): void {
    this.setLabels(name, { [SERVICE_LABEL]: serviceId });
  }

  /** Another writer removes all entries of `managedFields`. After that, only server-side apply is recorded. */
  resetManagedFields(name: string): void {
    const before = found(this.deployments, name);
    const { managedFields: _, ...metadata } = before.metadata;
    this.put({ ...before, metadata: { ...metadata, resourceVersion: this.next() } }, OWNER);
  }

  /** Another writer removes the controller's annotation. */
  removeAnnotation(name: string): void {
    const before = found(this.deployments, name);
    this.write(withoutLastRollout(before), OWNER);
  }

  /** Another writer replaces the spec of the Deployment, and removes our annotation. */
  replace(name: string, { spec }: Pick<Deployment, "spec">): void {
    const before = found(this.deployments, name);
    this.write(parsed({ ...withoutLastRollout(before), spec }), OWNER);
    this.judge.forget(name);
  }

  /** Another writer restores the template and the annotations of the previous revision. */
  undo(name: string): void {
    const before = found(this.deployments, name);
    const earlier = this.workloads ? this.workloads.previousOf(before) : this.earlier(before);
    if (!earlier) return;
    const annotations = {
      ...earlier.metadata.annotations,
      [REVISION_ANNOTATION]: before.metadata.annotations?.[REVISION_ANNOTATION] ?? "1",
    };
    const spec = { ...before.spec, template: earlier.spec.template };
    const after = { ...before, metadata: { ...before.metadata, annotations }, spec };
    this.write(parsed(after), { manager: "kubectl-rollout" });
    this.judge.forget(name);
  }

  /** A user changes the PipeScaling, and owns the fields that have a value then, also unchanged ones. */
  patchScaling(
    name: string,
    spec: Readonly<Record<string, unknown>> | undefined,
    annotations: Readonly<Record<string, string>> = {},
  ): void {
    const before = found(this.scalings, name);
    const generation = (before.metadata.generation ?? 0) + (spec ? 1 : 0);
    const metadata = { ...before.metadata, generation, resourceVersion: this.next() };
    const patch = { metadata: { annotations }, spec: spec ?? {} };
    const written = Object.entries(spec ?? {}).filter(([, value]) => value !== null);
    const applied = written.map(([field]) => fieldPath("f:spec", `f:${field}`));
    this.putScaling(parsed(patched({ ...before, metadata }, patch, false)), USER, applied);
  }

  removeScaling(name: string): void {
    this.scalingGone(found(this.scalings, name));
  }

  /** Another writer deletes the PipeScaling, and creates it again with the same spec and without a status. */
  replaceScaling(name: string): void {
    const { spec = {} } = found(this.scalings, name);
    this.removeScaling(name);
    this.createScaling(name, spec);
  }

  createScaling(name: string, spec: NonNullable<PipeScaling["spec"]>, namespace = "pipes"): void {
    const resourceVersion = this.next();
    const stamps = { uid: `uid-${resourceVersion}`, resourceVersion, generation: 1 };
    const metadata = { name, namespace, ...stamps, creationTimestamp: timeAt(this.clock.now()) };
    this.putScaling({ metadata, spec, status: { observedGeneration: -1 } }, USER);
  }

  /** Another writer changes the status of the PipeScaling. */
  patchStatus(name: string, status: object): void {
    const before = found(this.scalings, name);
    const metadata = { ...before.metadata, resourceVersion: this.next() };
    this.putScaling(parsed(patched({ ...before, metadata }, { status }, false)), USER);
  }

  /** Another writer removes the status of the PipeScaling. */
  emptyStatus(name: string): void {
    const { status: _, ...before } = found(this.scalings, name);
    this.putScaling({ ...before, metadata: { ...before.metadata, resourceVersion: this.next() } }, USER);
  }

  /** Another writer changes the conditions of the PipeScaling. */
  setConditions(name: string, change: (conditions: readonly Condition[]) => Condition[]): void {
    const before = found(this.scalings, name);
    const metadata = { ...before.metadata, resourceVersion: this.next() };
    const status = { ...before.status, conditions: change(before.status?.conditions ?? []) };
    this.putScaling({ ...before, metadata, status }, USER);
  }

  #writeSpec(before: Deployment, spec: Spec, writer: Writer): void {
    const { name } = before.metadata;
    const size = this.sizeOf(name);
    this.write(parsed({ ...before, spec }), writer);
    if (this.sizeOf(name) !== size) this.judge.forget(name);
  }
}

function withoutLastRollout(deployment: Deployment): Deployment {
  const { [LAST_ROLLOUT_ANNOTATION]: _, ...annotations } = deployment.metadata.annotations ?? {};
  return { ...deployment, metadata: { ...deployment.metadata, annotations } };
}
