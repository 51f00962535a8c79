import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { type HeldService, PIPE } from "../integration/faults/held-services.ts";

/** Removes the labels of the pipe, as its owner could. */
export const unlabel = ({ environment }: HeldService) =>
  environment.patchPipe(
    PIPE,
    { metadata: { labels: { [SERVICE_LABEL]: null, [TYPE_LABEL]: null } } },
    "owner",
  );

export async function isPaused(service: HeldService): Promise<boolean> {
  return (await service.pipe()).spec.paused === true;
}

export function resumed(service: HeldService): Promise<unknown> {
  return waitFor(async () => !(await isPaused(service)), {
    what: "the Deployment to be resumed",
    timeoutMs: 60_000,
  });
}

/** Requests of all pods, as their kubelets report them. */
export async function podCpus(service: HeldService): Promise<readonly (string | undefined)[]> {
  return (await service.pods()).map(
    ({ status }) => status?.containerStatuses?.[0]?.resources?.requests?.["cpu"],
  );
}
