import type { Io } from "../io.ts";
import { printTable, type Row } from "../output.ts";
import type { ServiceStatus } from "./services.ts";

/** Prints how each pipe of a service was resized, as far as the status has room for them. */
export function printPipes(io: Io, status: ServiceStatus): void {
  printTable(io, ["pipe", "state", "resized", "reason", "message"], pipeRows(status));
}

const METHODS = { InPlace: "in place", Rollout: "by a rollout" } as const;

export function pipeRows({ scaling, view }: ServiceStatus): Row[] {
  const { resizedBy = {} } = scaling?.status.pipes ?? {};
  const pending = new Map(view.pending.map((each) => [each.name, each]));
  const fallbacks = new Map(view.fallbacks.map((each) => [each.pipe, each]));
  const names = new Set([...pending.keys(), ...Object.keys(resizedBy), ...fallbacks.keys()]);
  return [...names].map((pipe) => {
    const method = resizedBy[pipe];
    const fallback = fallbacks.get(pipe);
    return {
      pipe,
      state: pending.get(pipe)?.state ?? "Done",
      resized: method && METHODS[method],
      reason: fallback?.reason ?? pending.get(pipe)?.reason,
      message: fallback?.message ?? pending.get(pipe)?.message,
    };
  });
}
