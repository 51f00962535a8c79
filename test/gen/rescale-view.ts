import type { RescaleView } from "../../src/cli/view/rescale-view.ts";
import type { PendingPipe } from "../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../src/domain/size.ts";

/** The start of the rescale of {@link rescaleView}. */
export const AT = Date.parse("2026-01-31T12:00:00Z");

/** A rescale of a service from one core to four; `Done` is a pipe that is not pending. */
export function rescaleView(...states: (PendingPipe["state"] | "Done")[]): RescaleView {
  return {
    service: "orders",
    desired: sizeOfCores(4),
    source: "Spec",
    effective: sizeOfCores(1),
    pipes: { total: states.length, updated: states.filter((state) => state === "Done").length },
    startedAt: new Date(AT),
    completedAt: undefined,
    requestId: undefined,
    state: "propagating",
    reason: "Progressing",
    message: "",
    pending: states.flatMap((state, at) => (state === "Done" ? [] : [{ name: `pipe-${at}`, state }])),
  };
}
