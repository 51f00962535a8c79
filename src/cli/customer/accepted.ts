import type { Io } from "../io.ts";
import { type Format, printData, printOne, type Row } from "../output.ts";
import { watch } from "../view/follow.ts";
import { watchCommand } from "./access.ts";
import type { ApiClient } from "./client.ts";
import { type RequestedSize, watchScaling } from "./scaling-watch.ts";

/** A change of size that the API has accepted. */
interface Accepted {
  readonly service: string;
  /** Path of the service's pipesCdcScaling. */
  readonly path: string;
  readonly requestId: string;
  /** For people. */
  readonly text: string;
  /** For programs. */
  readonly data: Row;
  /** Absent if the size that follows is not known. */
  readonly requested: RequestedSize | undefined;
  readonly hasEndedBoost?: boolean;
}

interface AcceptedOptions {
  readonly watch: boolean;
  readonly timeout: number | undefined;
  readonly output: Format;
}

/** Follows the rescale, or prints how to. @returns the exit code */
export async function followAccepted(
  api: ApiClient,
  { service, path, requestId, text, data, requested, hasEndedBoost = false }: Accepted,
  { watch: isWatch, timeout, output }: AcceptedOptions,
  io: Io,
): Promise<number> {
  const command = watchCommand(api.access, service);
  if (isWatch) {
    io.err(`Accepted: ${text} (request ${requestId}).\n`);
    try {
      const watched = watchScaling({ api, path, service, requested, hasEndedBoost });
      return await watch(io, output, watched, { timeoutMs: timeout, clock: api });
    } finally {
      if (io.signal.aborted) io.err(`The rescale continues. To watch it: ${command}\n`);
    }
  }
  if (output === "table") printOne(io, output, { service, accepted: text, requestId });
  else printData(io, output, { service, ...data, requestId });
  io.err(`The rescale takes seconds in place, otherwise minutes. To watch it: ${command}\n`);
  return 0;
}
