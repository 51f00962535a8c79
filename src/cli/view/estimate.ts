import { serviceLimit } from "../../domain/rollout-plan.ts";
import { sameSize } from "../../domain/size.ts";
import type { RescaleView } from "./rescale-view.ts";

/**
 * How long it may still take; `undefined` without ground for it, which is a pipe that came up in this rescale.
 * What one rollout took is taken for those to come, as many at once as the rollout policy allows.
 */
export function estimatedMsLeft(view: RescaleView, nowMs: number): number | undefined {
  const { state, startedAt, progressedAt } = view;
  if (state !== "propagating" || !startedAt || !progressedAt) return undefined;
  const { total, updated } = pipesOnTheirWay(view);
  if (updated === 0) return undefined;
  const rounds = (pipes: number) => 1 + (pipes - 1) / serviceLimit(view.pipes.total);
  const roundMs = (progressedAt.getTime() - startedAt.getTime()) / rounds(updated);
  const endsAtMs = startedAt.getTime() + roundMs * rounds(total);
  return endsAtMs > nowMs ? endsAtMs - nowMs : undefined;
}

/** Without those that had the size before, where each pipe is known by name. */
function pipesOnTheirWay({ pipes, lines }: RescaleView): RescaleView["pipes"] {
  if (lines.length < pipes.total) return pipes;
  const moving = lines.filter(({ from, to }) => !sameSize(from, to));
  return { total: moving.length, updated: moving.filter(({ state }) => state === "done").length };
}
