import { WaitingLine, type WaitingLineOptions } from "./waiting-line.ts";

export interface RolloutBudgetOptions extends Pick<WaitingLineOptions, "wake" | "clock"> {
  /** Maximum number of concurrent rollouts across all services. */
  readonly limit: number;
  /** Rollouts in the cache, and rollouts that may have started but are not in the cache yet. */
  readonly rolling: () => number;
}

/** Rollouts can also leave the budget by timeout, which produces no event. */
const RECHECK_MS = 30_000;

/** The limit of concurrent rollouts across all services, and the services that wait for it. */
export class RolloutBudget extends WaitingLine {
  constructor({ limit, rolling, wake, clock }: RolloutBudgetOptions) {
    super({ free: () => Math.max(0, limit - rolling()), recheckMs: () => RECHECK_MS, wake, clock });
  }
}
