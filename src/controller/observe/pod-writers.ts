import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import { managersOf } from "../../kube/managers.ts";
import { shared } from "../../kube/memoized.ts";
import type { ManagedFields, ObjectMeta } from "../../kube/objects.ts";
import { parseTime } from "../../kube/time.ts";

/*
 * The API server records in managedFields which writer last changed the resources of each container by the subresource
 * `resize`, and when, in whole seconds. Nothing else can change them after the pod was created.
 */

type Metadata = Pick<ObjectMeta, "managedFields">;

const RESIZE = "resize";

/** When the controller last changed the resources of a pod, in milliseconds since 1970. */
export function resizedAtMs({ managedFields = [] }: Metadata): number | undefined {
  const own = managedFields.find((entry) => isResize(entry) && isOwn(entry));
  return own && parseTime(own.time);
}

/** The field manager that last changed the resources of a container after its pod was created, unless it is ours. */
export function otherResizerOf(container: string, { managedFields = [] }: Metadata): string | undefined {
  const others = managedFields.filter((entry) => isResize(entry) && !isOwn(entry));
  // The usual case, for every version of every pod.
  if (others.length === 0) return undefined;
  const resources = [["f:spec", "f:containers", `k:${JSON.stringify({ name: container })}`, "f:resources"]];
  const found = others
    .filter((entry) => managersOf([entry], resources).length > 0)
    .toSorted((a, b) => parseTime(b.time) - parseTime(a.time))[0];
  const own = managedFields.find((entry) => isResize(entry) && isOwn(entry));
  const isOlder = found && own && parseTime(found.time) < parseTime(own.time);
  return found && !isOlder ? shared(found.manager) : undefined;
}

function isResize({ subresource }: ManagedFields): boolean {
  return subresource === RESIZE;
}

function isOwn({ manager }: ManagedFields): boolean {
  return manager === CONTROLLER_FIELD_MANAGER;
}
