import { activeBoost, type PipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { PIPE_SCALINGS, PLURAL } from "../../crd/names.ts";
import type { HistoryEntry } from "../../crd/pipe-scaling.ts";
import { REQUEST_ANNOTATION } from "../../crd/scaling-request.ts";
import { sizeOf } from "../../crd/size-fields.ts";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  describeSize,
  type Size,
  sameSize,
  sizeOfCores,
  smaller,
} from "../../domain/size.ts";
import { option } from "../../settings/option.ts";
import { integer } from "../../settings/values.ts";
import { CliError } from "../failure.ts";
import { kubectlCommand, outputOption, type Place, programCommand, switchOption } from "../options.ts";
import { printOne } from "../output.ts";
import { desiredSize } from "../status/scaling-view.ts";
import { recordsCommand } from "./command.ts";
import { SERVICES } from "./kinds.ts";
import { serviceArgument } from "./options.ts";
import { retryOnConflict, withKnownOutcome } from "./retry.ts";
import { requireScaling } from "./scaling.ts";
import { ignoredWindow } from "./service-open-window.ts";

const NO_SIZE = "there is no size to return to";

export const rollback = recordsCommand({
  name: "admin service rollback",
  summary: "return the pipes of a service to the previous size",
  details:
    "The previous size is the newest size in the history (admin service show) that every pipe ran and that is not the\n" +
    "current size. Sizes that failed, or that only a boost had, do not count. While the tier limits the service, sizes\n" +
    "above its maximum do not count either. A second rollback returns to the size before the first one, if every pipe\n" +
    "ran that; for an older size, use --to.",
  examples: [
    "admin service rollback <uuid>",
    "admin service rollback <uuid> --dry-run",
    "admin service rollback <uuid> --to 2",
  ],
  options: {
    ...serviceArgument,
    to: option(integer(CPU_MINIMUM_MILLICORES / 1000, CPU_MAXIMUM_MILLICORES / 1000).optional(), {
      placeholder: "cores",
      description: "CPU cores per replica of an older size in the history",
      flagOnly: true,
    }),
    now: switchOption("do not wait for the rollout window, for the next 2 hours"),
    dryRun: switchOption("print the size and write nothing"),
    ...outputOption,
  },
  async run(records, { service: id, to: cores, now, dryRun, output }, io) {
    const { place, clock } = records;
    const to = cores === undefined ? undefined : sizeOfCores(cores);
    const service = await SERVICES.require(records, id);
    const first = await requireScaling(records, service, NO_SIZE);
    requireNoBoost(place, first, clock.now());
    const from = desiredSize(first, clock.now());
    const maximum = maximumOf(first);
    requireWithin(maximum, first, to);
    const entry = requirePrevious(place, first, { from, to, maximum });
    const { replicaCpuMillicores, replicaMemoryGb } = entry;
    const change = {
      // The size no longer comes from an API request.
      metadata: { annotations: { [REQUEST_ANNOTATION]: null, ...(now ? ignoredWindow(clock.now()) : {}) } },
      spec: { replicaCpuMillicores, replicaMemoryGb },
    };
    if (!dryRun) {
      await retryOnConflict(`The PipeScaling of service ${id}`, async () => {
        const scaling = await requireScaling(records, service, NO_SIZE);
        requireSameSpec(place, first, scaling);
        await withKnownOutcome(
          records.change(PIPE_SCALINGS, scaling, change),
          `The write was not confirmed, so the size of service ${id} may have changed: see \`${historyCommand(place, id)}\` before you run the command again, because a second rollback may change the size again`,
        );
      });
    }
    const { name, namespace } = service;
    printOne(io, output, {
      id,
      name,
      namespace,
      from: from && describeSize(from),
      to: entry.summary,
    });
    if (entry.source === "TierDefault") {
      io.err(
        "The size was the default of the tier. The rollback sets it in the PipeScaling, so the tier no longer decides the size.\n",
      );
    }
    if (!maximum && !isWithin(sizeOf(entry), from)) {
      io.err("If this size is above the maximum of the tier, the pipes get that maximum.\n");
    }
    if (first.spec.suspend) {
      io.err("The service is suspended: no pipe is resized until it is resumed.\n");
    }
    io.err(
      dryRun
        ? "Dry run: nothing was written.\n"
        : `To watch the rescale: ${programCommand(place, `status ${id} --watch`)}\n`,
    );
  },
});

/** The command that shows the history of a service. */
function historyCommand(place: Place, id: string): string {
  return programCommand(place, `admin service show ${id}`);
}

/** Between the two reads, the controller may update the status. @throws CliError if another writer changed the spec */
function requireSameSpec(
  place: Place,
  { metadata: first }: PipeScalingView,
  { metadata }: PipeScalingView,
): void {
  if (first.uid === metadata.uid && first.generation === metadata.generation) return;
  const { name } = metadata;
  throw new CliError(
    `The PipeScaling of service ${name} was changed at the same time, and this command wrote nothing: see \`${historyCommand(place, name)}\`, then run the command again if the rollback is still needed.`,
  );
}

/** @throws CliError during a boost, because a rollback changes only the requested size, which is not in effect */
function requireNoBoost(place: Place, scaling: PipeScalingView, nowMs: number): void {
  const { name, namespace } = scaling.metadata;
  const boost = activeBoost(scaling, nowMs);
  if (!boost) return;
  const end = kubectlCommand(
    place,
    `patch ${PLURAL} ${name} --namespace ${namespace} --type merge --patch '{"spec":{"boost":null}}'`,
  );
  throw new CliError(
    `Service ${name} has a boost to ${describeSize(boost.size)} until ${new Date(boost.untilMs).toISOString()}, so nothing was written: a rollback changes only the requested size, which applies after the boost. To return to the requested size now, end the boost: ${end}`,
  );
}

/** The maximum of the tier, which the status shows only while it limits the service. */
function maximumOf({ status: { desired } }: PipeScalingView): Size | undefined {
  return desired?.source === "TierLimit" ? sizeOf(desired) : undefined;
}

/** False if the maximum is not known. */
function isWithin(size: Size, maximum: Size | undefined): boolean {
  return maximum !== undefined && sameSize(smaller(size, maximum), size);
}

/** @throws CliError if the pipes would get the maximum of the tier instead of this size */
function requireWithin(maximum: Size | undefined, { metadata }: PipeScalingView, to: Size | undefined): void {
  if (!maximum || !to || isWithin(to, maximum)) return;
  throw new CliError(
    `The pipes of service ${metadata.name} cannot return to ${describeSize(to)}, because the tier of the organization allows at most ${describeSize(maximum)}. Choose a smaller size, or move the organization to a larger tier first.`,
  );
}

interface Bounds {
  /** The current size; `undefined` if it is not known. */
  readonly from: Size | undefined;
  /** The size to search for; `undefined` for any. */
  readonly to?: Size | undefined;
  /** The maximum of the tier; `undefined` if it is not known. */
  readonly maximum?: Size | undefined;
}

/** @throws CliError if the history has no size to return to */
function requirePrevious(
  place: Place,
  { metadata: { name }, status: { history = [] } }: PipeScalingView,
  bounds: Bounds,
): HistoryEntry {
  const entry = findPrevious(history, bounds);
  if (entry) return entry;
  const { from, to, maximum } = bounds;
  const current = from ? describeSize(from) : "unknown";
  const another = maximum ? "another size that the tier allows" : "another size";
  const wanted = to ? describeSize(to) : another;
  const why = wanted === current ? "" : `, and its history has no completed rescale to ${wanted}`;
  throw new CliError(
    `There is nothing to roll back: the size of service ${name} is ${current}${why}. See \`${historyCommand(place, name)}\` for the history.`,
  );
}

/**
 * Returns the newest entry with a size that every pipe ran, that is not the current size, and that the tier allows.
 * Entries of boosts do not count.
 */
export function findPrevious(
  history: readonly HistoryEntry[],
  { from, to, maximum }: Bounds,
): HistoryEntry | undefined {
  return history.find((entry) => {
    const size = sizeOf(entry);
    // The size of a boost was temporary. Its source can also be TierLimit, so `boost` decides.
    if (entry.boost || entry.result !== "Scaled" || sameSize(size, from)) return false;
    if (maximum && !isWithin(size, maximum)) return false;
    return to === undefined || sameSize(size, to);
  });
}
