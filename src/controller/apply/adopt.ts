import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import type { FieldsV1, ManagedFields } from "../../kube/objects.ts";
import type { Workload } from "../../kube/workloads.ts";
import type { Of } from "../actions.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../names.ts";
import { annotationSubject, formatLastRollout, partitionSubject } from "../observe/last-rollout.ts";
import { containerNameOf, type PipeView } from "../observe/pipe-view.ts";
import { LAST_ROLLOUT, ownableFields, PARTITION } from "../observe/workloads/field-owners.ts";
import type { WriteError } from "../observe/write-record.ts";
import { type Applier, attempt, patchPipe, readPipe } from "./applier.ts";
import { attemptJudged } from "./pods.ts";

/**
 * Writes the annotation of a pipe, and makes the controller an owner of it, and of the size if the action says so.
 * Server-side apply removes a field that an owner no longer applies only if no other manager owns it.
 *
 * A patch with the same values would not do that: the API server records a writer only for fields that it changes.
 * Server-side apply would, but it would also own the container, so a chart could not rename it. So the controller adds
 * the fields to its own record, as kubectl does when it migrates an object to server-side apply (docs/adr/0036).
 */
export function adopt(
  applier: Applier,
  { pipe, rollout, ownsSize = false, judged }: Of<"adopt">,
): Promise<WriteError | undefined> {
  const aim = { purpose: "adopt", subject: annotationSubject(rollout) } as const;
  return attemptJudged(applier, { pipe, judged }, aim, async () => {
    const annotation = ownsSize ? undefined : await patchPipe(applier, pipe, rollout, undefined);
    if (annotation && !annotation.isStripped) return { annotation };
    const whole = await readPipe(applier, pipe);
    if (!whole) return {};
    // `kubectl rollout undo` may have restored the same annotation. Its field manager is then the only owner.
    const isThere =
      whole.metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] === formatLastRollout(rollout, pipe.metadata.uid);
    if (annotation && !isThere) return { annotation };
    applier.assertMayWrite();
    const ofSize = ownsSize ? sizeFieldsOf(whole, pipe) : [];
    const managedFields = withFields(whole, pipe, isThere ? [...ofSize, LAST_ROLLOUT] : ofSize);
    return { annotation: await patchPipe(applier, pipe, rollout, undefined, managedFields) };
  });
}

/** Writes only `managedFields`, because the service may be suspended, or the workload may no longer be a pipe. */
export function leavePartition(
  applier: Applier,
  { pipe }: { readonly pipe: PipeView },
): Promise<WriteError | undefined> {
  const aim = { purpose: "adopt", subject: partitionSubject(pipe.lastRollout) } as const;
  return attempt(applier, pipe, aim, async () => {
    const whole = await readPipe(applier, pipe);
    if (!whole) return {};
    applier.assertMayWrite();
    await patchPipe(applier, pipe, undefined, undefined, withFields(whole, pipe, []));
    return {};
  });
}

type FieldPath = readonly string[];

function sizeFieldsOf({ spec }: Workload, pipe: PipeView): readonly FieldPath[] {
  const name = containerNameOf(pipe);
  const container = spec.template.spec.containers.find((each) => each.name === name);
  return container ? ownableFields(container, pipe.cpuLimitFollows) : [];
}

/** Returns the managedFields of a workload, with these fields in our record, and without the partition after a hold. */
function withFields(
  { metadata: { managedFields = [] } }: Workload,
  pipe: PipeView,
  fields: readonly FieldPath[],
): readonly ManagedFields[] {
  const own = managedFields.find(isOwn) ?? recordOf();
  // If the controller stayed an owner of the partition, the owner of the pipe could not apply another one.
  const kept = pipe.isPausedForCommit ? own.fieldsV1 : withoutField(own.fieldsV1, PARTITION);
  const fieldsV1 = fields.reduce(withField, kept ?? {});
  return [...managedFields.filter((each) => !isOwn(each)), { ...own, fieldsV1 }];
}

/** Our record of a workload with these fields, each by its path in `fieldsV1`. */
export function recordOf(...fields: readonly FieldPath[]): ManagedFields {
  const record = { operation: "Update", apiVersion: "apps/v1", fieldsType: "FieldsV1" };
  return { ...record, manager: CONTROLLER_FIELD_MANAGER, fieldsV1: fields.reduce(withField, {}) };
}

/** The API server has one record for each manager, operation and subresource. */
function isOwn({ manager, operation, subresource = "" }: ManagedFields): boolean {
  return manager === CONTROLLER_FIELD_MANAGER && operation === "Update" && subresource === "";
}

function withoutField(fields: FieldsV1 | undefined, [step, ...rest]: FieldPath): FieldsV1 | undefined {
  if (step === undefined || !fields?.[step]) return step === undefined ? undefined : fields;
  const { [step]: inner, ...others } = fields;
  const left = withoutField(inner, rest);
  if (left) return { ...others, [step]: left };
  return Object.keys(others).length > 0 ? others : undefined;
}

function withField(fields: FieldsV1, [step, ...rest]: FieldPath): FieldsV1 {
  return step === undefined ? fields : { ...fields, [step]: withField(fields[step] ?? {}, rest) };
}
