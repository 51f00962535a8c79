import { describeSize } from "../../domain/size.ts";
import type { Io } from "../io.ts";
import { type Format, printData, printList, printOne } from "../output.ts";
import { exitCodeOf } from "../view/follow.ts";
import { type ProgressAnswer, progress, size, toSize } from "./answers.ts";
import type { ApiClient } from "./client.ts";
import { stateOf } from "./progress-view.ts";
import { Refusal } from "./refusal.ts";

interface ScalingPlace {
  readonly api: ApiClient;
  readonly path: string;
  readonly service: string;
}

/** Prints how a service's rescale stands. */
export async function showScaling(
  io: Io,
  { api, path, service }: ScalingPlace,
  output: Format,
): Promise<number> {
  let told: ProgressAnswer;
  try {
    told = (await api.ask({ method: "GET", path: `${path}/progress` }, progress)).result;
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
    // Of an absent service this says the same; an older API knows no more than this.
    const { result } = await api.ask({ method: "GET", path }, size);
    if (output !== "table") printData(io, output, { service, effective: result });
    else printOne(io, output, { service, effective: describeSize(toSize(result)) });
    io.err(
      `The API at ${api.access.url} is of an older version, which does not tell how far a rescale is.\n`,
    );
    return exitCodeOf({ state: "unknown" });
  }
  if (output === "table") printProgress(io, service, told);
  else printData(io, output, { service, ...told });
  return exitCodeOf({ state: stateOf(told) });
}

function printProgress(io: Io, service: string, told: ProgressAnswer): void {
  const { state, reason, message, desired, effective, pipes, failures } = told;
  const { requestId, startedAt, completedAt } = told;
  printOne(io, "table", {
    service,
    state,
    reason,
    message,
    wanted: desired && describeSize(toSize(desired)),
    from: desired?.source,
    effective: effective && describeSize(toSize(effective)),
    pipes: pipes && `${pipes.updated}/${pipes.total}`,
    requestId,
    startedAt,
    completedAt,
  });
  if (failures.length === 0) return;
  io.out("\n");
  printList(io, "table", ["pipe", "reason", "attempts", "at", "message"], failures);
}
