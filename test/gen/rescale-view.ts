import type { PipeLineState, RescaleView } from "../../src/cli/view/rescale-view.ts";
import { sizeOfCores } from "../../src/domain/size.ts";

/** When the rescale of {@link rescaleView} began. */
export const AT = Date.parse("2026-01-31T12:00:00Z");

/** A service on its way from one core to four, whose pipes are in these states. */
export function rescaleView(...states: PipeLineState[]): RescaleView {
  return {
    service: "orders",
    wanted: sizeOfCores(4),
    from: "Spec",
    effective: sizeOfCores(1),
    pipes: { total: states.length, updated: states.filter((state) => state === "done").length },
    startedAt: new Date(AT),
    completedAt: undefined,
    requestId: undefined,
    state: "propagating",
    reason: "Progressing",
    message: "",
    lines: states.map((state, at) => ({
      name: `pipe-${at}`,
      from: sizeOfCores(1),
      to: sizeOfCores(4),
      state,
      progress: state === "rolling" ? { updated: 1, of: 2 } : undefined,
    })),
  };
}
