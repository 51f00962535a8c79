import { MAX_PENDING } from "../../crd/pipe-scaling.ts";
import { isForbiddenByRbac, KubeApiError, KubeUnreachableError } from "../../kube/errors.ts";
import type { ConfigMap } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import { UsageError } from "../../settings/option.ts";
import { nonEmptyText } from "../../settings/values.ts";
import { recordsCommand } from "../admin/command.ts";
import { ORGANIZATIONS, SERVICES } from "../admin/kinds.ts";
import type { Records } from "../admin/records.ts";
import { EXIT_DONE, EXIT_UNHEALTHY } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { argument, requireWatch, watchOptions, wideOutputOption } from "../options.ts";
import { type Format, printData, printList, printTable, type Row } from "../output.ts";
import { exitCodeOf, watch } from "../view/follow.ts";
import { dataRow, nextSteps, printService, TABLE_COLUMNS, tableRow, WIDE_COLUMNS } from "./print.ts";
import { findService, readStatus, readStatuses, type ServiceStatus } from "./services.ts";

export const status = recordsCommand({
  name: "status",
  summary: "show the progress of rescales",
  details:
    "Without a service, prints a table of all services; --output wide adds columns. With the ID or the name of a\n" +
    "service, prints its pending pipes, failures and the next steps; --output wide adds how each pipe was resized:\n" +
    "in place, or by a rollout, and why. With --watch, shows the progress instead, until the outcome. Exits with 3\n" +
    "if a rescale failed or is suspended.\n\n" +
    "Needs permission to list ConfigMaps in the namespace of the records, and PipeScalings in the namespaces of\n" +
    "the pipes.",
  examples: [
    "status",
    "status orders",
    "status orders --output wide",
    "status orders --watch --timeout 15m",
    "status 01234567-89ab-4cde-8f01-23456789abcd --output json",
  ],
  options: {
    service: argument(nonEmptyText.optional(), "ID or name of a service; default: all services"),
    ...watchOptions,
    ...wideOutputOption,
  },
  check({ service, watch, timeout }) {
    if (watch && service === undefined)
      throw new UsageError("--watch needs the ID or the name of a service.");
    requireWatch(watch, timeout);
  },
  async run(records, { service: idOrName, watch: isWatch, timeout: timeoutMs, output: format }, io) {
    const isWide = format === "wide";
    const output = isWide ? "table" : format;
    const objects = await records.list<ConfigMap>(CONFIG_MAPS, "service");
    // doctor reports malformed organizations.
    const silent = { err: () => undefined };
    const known = await ORGANIZATIONS.list(records, silent);
    const organizations = new Map(known.map((each) => [each.id, each]));
    if (idOrName === undefined) {
      const services = SERVICES.wellFormed(io, objects);
      return showAll(io, output, await readStatuses(records, services, organizations, io.signal), isWide);
    }
    const service = findService(records, objects, idOrName);
    const read = () => readStatus(records, service, organizations, io.signal);
    if (isWatch) return await watchOne(io, output, read, records, timeoutMs);
    const status = await read();
    if (output === "table") printService(io, status, records.place);
    else printData(io, output, dataRow(status));
    if (isWide) printPipes(io, status);
    return exitCodeOf(status.view);
  },
});

function showAll(io: Io, output: Format, statuses: readonly ServiceStatus[], isWide: boolean): number {
  const columns = isWide ? [...TABLE_COLUMNS, ...WIDE_COLUMNS] : TABLE_COLUMNS;
  if (output !== "table") printData(io, output, statuses.map(dataRow));
  else if (statuses.length > 0) printList(io, output, columns, statuses.map(tableRow));
  else io.err(`There is no service yet: see ${io.program} admin service create --help.\n`);
  const isUnhealthy = statuses.some(({ view }) => exitCodeOf(view) === EXIT_UNHEALTHY);
  return isUnhealthy ? EXIT_UNHEALTHY : EXIT_DONE;
}

const POLL_MS = 1000;

async function watchOne(
  io: Io,
  output: Format,
  readStatus: () => Promise<ServiceStatus>,
  { place, clock }: Records,
  timeoutMs: number | undefined,
): Promise<number> {
  let last: ServiceStatus | undefined;
  const errors = new TransientErrors();
  const retryAfterMs = (error: unknown) => errors.retryAfterMs(error);
  const read = async () => {
    last = await readStatus();
    errors.recordSuccess();
    return { view: last.view, data: dataRow(last) };
  };
  const polled = { read, retryAfterMs, intervalMs: POLL_MS };
  const exitCode = await watch(io, output, polled, { timeoutMs, clock });
  const steps = exitCode === EXIT_UNHEALTHY && last ? nextSteps(last, place) : [];
  for (const step of steps) io.err(`${step}\n`);
  return exitCode;
}

/**
 * Decides which errors of one watch are retried, such as those of an unavailable API server, but no 403, except from an
 * API server that has just started.
 */
export class TransientErrors {
  #isUnauthorized = false;

  recordSuccess(): void {
    this.#isUnauthorized = false;
  }

  /** Returns the minimum delay before the next read, or `undefined` if the error is final. */
  retryAfterMs(error: unknown): number | undefined {
    if (error instanceof KubeUnreachableError) return 0;
    if (!(error instanceof KubeApiError)) return undefined;
    if (error.isSoonAfterOutage && isForbiddenByRbac(error)) return 0;
    // Credentials can expire during a watch. After a 401, the client reads new ones for the next call.
    const isFirst = error.code === 401 && !this.#isUnauthorized;
    if (isFirst) this.#isUnauthorized = true;
    return isFirst || error.code === 429 || error.code >= 500 ? (error.retryAfterMs ?? 0) : undefined;
  }
}

/** Prints how each pipe that the status lists was resized. */
export function printPipes(io: Io, status: ServiceStatus): void {
  printTable(io, ["pipe", "state", "resized", "reason", "message"], pipeRows(status));
}

const METHODS = { InPlace: "in place", Rollout: "by a rollout" } as const;

export function pipeRows({ view }: ServiceStatus): Row[] {
  const { resizedBy = {} } = view;
  // If the list is full, other pipes may be pending, too.
  const isListComplete = view.pending.length < MAX_PENDING;
  const pending = new Map(view.pending.map((each) => [each.name, each]));
  const fallbacks = new Map(view.fallbacks.map((each) => [each.pipe, each]));
  const names = new Set([...pending.keys(), ...Object.keys(resizedBy), ...fallbacks.keys()]);
  return [...names].map((pipe) => {
    const method = resizedBy[pipe];
    const fallback = fallbacks.get(pipe);
    const isDone = method !== undefined || isListComplete;
    return {
      pipe,
      state: pending.get(pipe)?.state ?? (isDone ? "Done" : undefined),
      resized: method && METHODS[method],
      reason: fallback?.reason ?? pending.get(pipe)?.reason,
      message: fallback?.message ?? pending.get(pipe)?.message,
    };
  });
}
