import { type PipeScalingView, toPipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Service } from "../../records/service.ts";
import { CliError } from "../failure.ts";
import { refuseDeleted } from "./kinds.ts";
import type { Records } from "./records.ts";

/**
 * @param consequence of a missing PipeScaling, as in "…, so there is no size to return to"
 * @throws CliError if the service has none, or it is being deleted
 */
export async function requireScaling(
  records: Records,
  { id, namespace }: Service,
  consequence: string,
): Promise<PipeScalingView> {
  const object = await records.get<PipeScaling & KubeObject>(PIPE_SCALINGS, id, namespace);
  if (!object) {
    throw new CliError(
      `Service ${id} has no PipeScaling in the namespace ${namespace}, so ${consequence}. The controller creates it when it sees the first database pipe of the service.`,
    );
  }
  refuseDeleted(records.place, {
    resource: PIPE_SCALINGS,
    object,
    what: `PipeScaling of service ${id}`,
    remedy:
      "When it is gone, the controller creates another one if the service has pipes, with their size and an empty history.",
  });
  return toPipeScalingView(object);
}
