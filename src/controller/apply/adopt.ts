import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import type { FieldsV1, ManagedFields } from "../../kube/objects.ts";
import type { Workload } from "../../kube/workloads.ts";
import type { PipeAction } from "../actions.ts";
import { annotationSubject } from "../observe/last-rollout.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { ownableFields, PARTITION } from "../observe/workloads/field-owners.ts";
import type { WriteError } from "../observe/write-record.ts";
import { type Applier, attempt, patchPipe, readPipe } from "./applier.ts";

/**
 * Writes the annotation of a pipe, and makes the controller an owner of its size, and of nothing else, if the action says
 * so. Server-side apply removes a field that an owner no longer applies only if no other manager owns it.
 *
 * A patch with the same values would not do that: the API server records a writer only for fields that it changes.
 * Server-side apply would, but it would also own the container, so a chart could not rename it. So the controller adds the
 * fields to its own record, as kubectl does when it migrates an object to server-side apply (docs/adr/0036).
 */
export function adopt(
  applier: Applier,
  { pipe, rollout, ownsSize = false }: Extract<PipeAction, { readonly type: "adopt" }>,
): Promise<WriteError | undefined> {
  const aim = { purpose: "adopt", subject: annotationSubject(rollout) } as const;
  return attempt(applier, pipe, aim, async () => {
    if (!ownsSize) return { annotation: await patchPipe(applier, pipe, rollout, undefined) };
    const whole = await readPipe(applier, pipe);
    if (!whole) return {};
    applier.assertMayWrite();
    const managedFields = withSize(whole, pipe);
    return { annotation: await patchPipe(applier, pipe, rollout, undefined, managedFields) };
  });
}

/** The records of a workload, with the fields of the size in our own one. */
function withSize({ metadata, spec }: Workload, pipe: PipeView): readonly ManagedFields[] {
  const { managedFields = [] } = metadata;
  const name = "problem" in pipe.container ? undefined : pipe.container.name;
  const container = spec.template.spec.containers.find((each) => each.name === name);
  const fields = container ? ownableFields(container, pipe.cpuLimitFollows) : [];
  const own = managedFields.find(isOwn) ?? recordOf();
  // Otherwise the owner of the partition could not apply another one.
  const kept = pipe.isPausedForCommit ? own.fieldsV1 : withoutField(own.fieldsV1, PARTITION);
  const fieldsV1 = fields.reduce(withField, kept ?? {});
  return [...managedFields.filter((each) => !isOwn(each)), { ...own, fieldsV1 }];
}

/** Our record of a workload with these fields, each by its path in `fieldsV1`. */
export function recordOf(...fields: readonly (readonly string[])[]): ManagedFields {
  const record = { operation: "Update", apiVersion: "apps/v1", fieldsType: "FieldsV1" };
  return { ...record, manager: CONTROLLER_FIELD_MANAGER, fieldsV1: fields.reduce(withField, {}) };
}

/** The API server has one record for each manager, operation and subresource. */
function isOwn({ manager, operation, subresource = "" }: ManagedFields): boolean {
  return manager === CONTROLLER_FIELD_MANAGER && operation === "Update" && subresource === "";
}

function withoutField(
  fields: FieldsV1 | undefined,
  [step, ...rest]: readonly string[],
): FieldsV1 | undefined {
  if (step === undefined || !fields?.[step]) return step === undefined ? undefined : fields;
  const { [step]: inner, ...others } = fields;
  const left = withoutField(inner, rest);
  if (left) return { ...others, [step]: left };
  return Object.keys(others).length > 0 ? others : undefined;
}

function withField(fields: FieldsV1, [step, ...rest]: readonly string[]): FieldsV1 {
  return step === undefined ? fields : { ...fields, [step]: withField(fields[step] ?? {}, rest) };
}
