import { LAST_ROLLOUT_ANNOTATION } from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { FieldsV1 } from "../../../src/kube/objects.ts";
import type { Kinds } from "./history.ts";
import {
  ANNOTATION_FIELDS,
  ANNOTATIONS_MAP,
  found,
  labelsOf,
  PAUSED_FIELD,
  SERVICE,
  SIZE_FIELDS,
  specOf,
} from "./history-objects.ts";
import { ObjectHistory } from "./object-history.ts";

type Deployment = Kinds["Deployment"];

/** The events of Deployments. */
export class DeploymentHistory extends ObjectHistory {
  readonly #deployments = new Map<string, Deployment>();

  /** The owner creates a Deployment, and its rollout completes. */
  pipe(name: string, cores: number, labels: Readonly<Record<string, string>> = labelsOf(SERVICE)): this {
    const metadata = { ...this.meta(name), labels, generation: 1, managedFields: [] };
    return this.#see({ metadata, spec: specOf(cores) }).rolledOut(name);
  }

  /** The owner sets a strategy that stops old pods first. */
  stopOldPodsFirst(
    name: string,
    strategy: NonNullable<Deployment["spec"]["strategy"]> = { type: "Recreate" },
  ): this {
    return this.#change(name, (before) => ({ ...before, spec: { ...before.spec, strategy } }));
  }

  /** The controller applies a size. */
  applySize(name: string, cores: number, more: Partial<Deployment["spec"]> = {}): this {
    const fieldsV1 = { ...SIZE_FIELDS, ...ANNOTATION_FIELDS };
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        generation: (before.metadata.generation ?? 0) + 1,
        annotations: {
          ...before.metadata.annotations,
          [LAST_ROLLOUT_ANNOTATION]: `${cores} at ${this.version}`,
        },
        managedFields: [{ manager: CONTROLLER_FIELD_MANAGER, fieldsV1 }],
      },
      spec: { ...before.spec, ...specOf(cores), ...more },
    }));
  }

  /** Another writer applies a size, and takes over the fields. */
  overwriteSize(name: string, cores: number): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        generation: (before.metadata.generation ?? 0) + 1,
        managedFields: [
          ...(before.metadata.managedFields.length > 0
            ? [{ manager: CONTROLLER_FIELD_MANAGER, fieldsV1: ANNOTATION_FIELDS }]
            : []),
          { manager: "somebody", fieldsV1: SIZE_FIELDS },
        ],
      },
      spec: specOf(cores),
    }));
  }

  /** Another writer replaces a Deployment that the controller paused, and keeps the pause. */
  replacePaused(name: string, cores: number): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        generation: (before.metadata.generation ?? 0) + 1,
        annotations: {},
        managedFields: [
          { manager: CONTROLLER_FIELD_MANAGER, fieldsV1: PAUSED_FIELD },
          { manager: "somebody", fieldsV1: SIZE_FIELDS },
        ],
      },
      spec: { ...specOf(cores), paused: true },
    }));
  }

  /** Another writer restores an older Deployment, with its size and annotation. */
  restoreOlder(name: string, cores: number): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        generation: (before.metadata.generation ?? 0) + 1,
        annotations: {
          ...before.metadata.annotations,
          [LAST_ROLLOUT_ANNOTATION]: `older than ${this.version}`,
        },
        managedFields: [
          { manager: CONTROLLER_FIELD_MANAGER, fieldsV1: ANNOTATIONS_MAP },
          { manager: "restorer", fieldsV1: { ...SIZE_FIELDS, ...ANNOTATION_FIELDS } },
        ],
      },
      spec: specOf(cores),
    }));
  }

  /** Replaces the fields that the controller owned in the last event, without a new version. */
  #own(name: string, spec: FieldsV1): this {
    const last = this.entries.pop();
    if (last?.type !== "seen" || last.kind !== "Deployment") throw new Error(`no write to ${name}`);
    const fieldsV1 = { ...ANNOTATION_FIELDS, "f:spec": spec };
    const managedFields = [{ manager: CONTROLLER_FIELD_MANAGER, fieldsV1 }];
    return this.#see({ ...last.object, metadata: { ...last.object.metadata, managedFields } });
  }

  /** The controller becomes the owner of a field. */
  own(name: string, fieldsV1: FieldsV1): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        managedFields: [{ manager: CONTROLLER_FIELD_MANAGER, fieldsV1 }],
      },
    }));
  }

  rolledOut(name: string, terminatingReplicas = 0): this {
    return this.#change(name, (before) => ({
      ...before,
      status: {
        ...(before.metadata.generation === undefined
          ? {}
          : { observedGeneration: before.metadata.generation }),
        replicas: 1,
        updatedReplicas: 1,
        availableReplicas: 1,
        terminatingReplicas,
        conditions: [{ type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" }],
      },
    }));
  }

  /** The owner changes the number of replicas. Without any, the rollout is complete. */
  scale(name: string, replicas: number): this {
    return this.#change(name, (before) => {
      const generation = (before.metadata.generation ?? 0) + 1;
      const status = {
        observedGeneration: generation,
        replicas: 0,
        updatedReplicas: 0,
        availableReplicas: 0,
      };
      return {
        ...before,
        metadata: { ...before.metadata, generation },
        spec: { ...before.spec, replicas },
        ...(replicas === 0 ? { status } : {}),
      };
    });
  }

  /** The controller pauses a Deployment and applies a size. */
  pause(name: string, cores: number): this {
    this.applySize(name, cores, { paused: true });
    return this.#own(name, { ...SIZE_FIELDS["f:spec"], ...PAUSED_FIELD["f:spec"] });
  }

  pauseByAnotherWriter(name: string): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        managedFields: [{ manager: "somebody", fieldsV1: PAUSED_FIELD }],
      },
      spec: { ...before.spec, paused: true },
    }));
  }

  /** The owner resumes a Deployment, and changes an annotation. */
  resumeByAnotherWriter(name: string): this {
    return this.#change(name, ({ spec: { paused: _, ...spec }, metadata, ...before }) => ({
      ...before,
      metadata: { ...metadata, annotations: { ...metadata.annotations, resumed: "true" } },
      spec,
    }));
  }

  /** The controller resumes a Deployment. */
  resume(name: string): this {
    return this.#change(name, ({ spec: { paused: _, ...spec }, ...before }) => ({ ...before, spec }));
  }

  /** The controller restores the template from before the pause, and resumes. */
  undoCommit(name: string, cores: number): this {
    return this.applySize(name, cores, { paused: false });
  }

  /** Somebody removes all managed fields, which a later update does not track. */
  forgetManagers(name: string): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: { ...before.metadata, managedFields: [] },
    }));
  }

  /** The owner moves a Deployment to another service, or to none. */
  relabel(name: string, labels: Readonly<Record<string, string>>): this {
    return this.#change(name, (before) => ({ ...before, metadata: { ...before.metadata, labels } }));
  }

  #change(name: string, change: (before: Deployment) => Deployment): this {
    const after = change(this.deployment(name));
    return this.#see({ ...after, metadata: { ...after.metadata, ...this.next() } });
  }

  #see(object: Deployment): this {
    this.#deployments.set(object.metadata.name, object);
    return this.add("seen", "Deployment", object);
  }

  protected deployment(name: string): Deployment {
    return found(this.#deployments, name);
  }
}
