import { IGNORE_WINDOW_ANNOTATION } from "../../controller/names.ts";
import { type PipeScalingView, toPipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { HistoryEntry, PipeScaling, PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import { REQUEST_ANNOTATION } from "../../crd/scaling-request.ts";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  describeSize,
  type Size,
  sameSize,
  sizeOfCores,
  smaller,
} from "../../domain/size.ts";
import type { Tier } from "../../domain/tier.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Service } from "../../records/service.ts";
import { option } from "../../settings/option.ts";
import { readTiers, tiersFileSetting } from "../../settings/tiers.ts";
import { integer } from "../../settings/values.ts";
import { PROGRAM } from "../command.ts";
import { CliError } from "../failure.ts";
import { outputOption, recordsFlag, switchOption } from "../options.ts";
import { printOne } from "../output.ts";
import { desiredSize } from "../status/scaling-view.ts";
import { sizeOf } from "../view/rescale-view.ts";
import { recordsCommand } from "./command.ts";
import { ORGANIZATIONS, SERVICES } from "./kinds.ts";
import { serviceArgument } from "./options.ts";
import type { Records } from "./records.ts";
import { retryOnConflict, withKnownOutcome } from "./retry.ts";

/** How long `--now` lets rollouts start outside the rollout window. */
const IGNORE_WINDOW_MS = 2 * 3_600_000;

export const rollback = recordsCommand({
  name: "admin service rollback",
  summary: "return the pipes of a service to the previous size",
  details:
    "The previous size is the newest size in the history (admin service show) that every pipe ran and that is not the\n" +
    "current size, so it is never a size that failed. A second rollback returns to the size before the first one;\n" +
    "for an older size, use --to.",
  examples: [
    "admin service rollback <uuid>",
    "admin service rollback <uuid> --dry-run",
    "admin service rollback <uuid> --to 2",
  ],
  options: {
    ...serviceArgument,
    to: option(integer(CPU_MINIMUM_MILLICORES / 1000, CPU_MAXIMUM_MILLICORES / 1000).optional(), {
      placeholder: "cores",
      description: "an older size of the history, by the CPU cores of each replica",
      flagOnly: true,
    }),
    now: switchOption("do not wait for the rollout window, for the next 2 hours"),
    dryRun: switchOption("print the size and write nothing"),
    ...tiersFileSetting,
    ...outputOption,
  },
  async run(records, { service: id, to: cores, now, dryRun, tiersFile, output }, io) {
    const tiers = readTiers(tiersFile);
    const to = cores === undefined ? undefined : sizeOfCores(cores);
    const service = await SERVICES.require(records, id);
    // Before the write: a failed read after it would look as if nothing was done.
    const organization = await ORGANIZATIONS.find(records, io, service.organizationId);
    const tier = organization && tiers.get(organization.tier);
    const first = await readScaling(records, service);
    const from = desiredSize(first);
    const entry = requirePrevious(first, from, to);
    const change = changeTo(entry, first.spec, tier);
    if (!dryRun) {
      await retryOnConflict(`The PipeScaling of service ${id}`, async () => {
        const scaling = await readScaling(records, service);
        requireSameSpec(first, scaling);
        await write(records, scaling, change, now);
      });
    }
    const { name, namespace } = service;
    printOne(io, output, {
      ...{ id, name, namespace },
      from: from && describeSize(from),
      to: entry.summary,
    });
    io.err(sizeNote(entry, change, tier));
    if (first.spec.suspend) {
      io.err("The service is suspended: no pipe is resized until it is resumed.\n");
    }
    io.err(
      dryRun
        ? "Dry run: nothing was written.\n"
        : `To watch the rescale: ${PROGRAM} status ${id} --watch${recordsFlag(records.namespace)}\n`,
    );
  },
});

async function readScaling(records: Records, { id, namespace }: Service): Promise<PipeScalingView> {
  const object = await records.get<PipeScaling & KubeObject>(PIPE_SCALINGS, id, namespace);
  if (!object) {
    throw new CliError(
      `Service ${id} has no PipeScaling in the namespace ${namespace}, so there is no size to return to. The controller creates it when it sees the first database pipe of the service.`,
    );
  }
  const scaling = toPipeScalingView(object);
  if (!scaling.isBeingDeleted) return scaling;
  throw new CliError(
    `The PipeScaling of service ${id} is being deleted: wait until it is gone. The controller creates another one with the size of the pipes.`,
  );
}

/** The controller may update the status during the rollback; a change of the spec by others ends it. */
function requireSameSpec({ metadata: first }: PipeScalingView, { metadata }: PipeScalingView): void {
  if (first.uid === metadata.uid && first.generation === metadata.generation) return;
  const { name } = metadata;
  throw new CliError(
    `The PipeScaling of service ${name} was changed at the same time, and this command wrote nothing: see admin service show ${name}, then run the command again if the rollback is still needed.`,
  );
}

/** @throws CliError if the history has no size to return to */
function requirePrevious(
  { metadata: { name }, status: { history = [] } }: PipeScalingView,
  from: Size | undefined,
  to: Size | undefined,
): HistoryEntry {
  if (to && sameSize(from, to)) {
    throw new CliError(
      `The size of service ${name} is ${describeSize(to)} already: there is nothing to roll back.`,
    );
  }
  const entry = findPrevious(history, from, to);
  if (entry) return entry;
  const other = from ? ` other than ${describeSize(from)}` : "";
  const problem = to
    ? `In the history of service ${name} there is no rescale to ${describeSize(to)} that completed.`
    : `The history of service ${name} has no previous size: no rescale to a size${other} has completed.`;
  throw new CliError(`${problem} See admin service show ${name} for the history.`);
}

/** Removes the annotation of the API request, because the size no longer comes from it. */
async function write(
  records: Records,
  scaling: PipeScalingView,
  change: SizeChange,
  now: boolean,
): Promise<void> {
  const { name } = scaling.metadata;
  const until = new Date(Date.now() + IGNORE_WINDOW_MS).toISOString();
  const annotations = { [REQUEST_ANNOTATION]: null, ...(now ? { [IGNORE_WINDOW_ANNOTATION]: until } : {}) };
  await withKnownOutcome(
    records.change(PIPE_SCALINGS, scaling, { metadata: { annotations }, spec: change }),
    `The write got no response, so the size of service ${name} may have changed: see admin service show ${name} before you run the command again, because a second rollback returns to the size before the first one`,
  );
}

/** The size that the pipes will get, if it may not be the size of the entry. */
function sizeNote(entry: HistoryEntry, change: SizeChange, tier: Tier | undefined): string {
  if (change.replicaCpuMillicores === null) {
    return `The size is removed from the PipeScaling, because ${entry.summary} was the default of the organization's tier: the tier decides the size again.\n`;
  }
  const size = sizeOf(entry);
  if (!tier || smaller(size, tier.maximumSize) === size) return "";
  return `The tier ${tier.name} allows ${describeSize(tier.maximumSize)} at most: the pipes get that size, and the PipeScaling reports TierLimited.\n`;
}

/**
 * The newest entry that a rollback can return to: every pipe ran its size, and it is not the current size.
 *
 * @param to only an entry of this size
 */
export function findPrevious(
  history: readonly HistoryEntry[],
  current: Size | undefined,
  to: Size | undefined,
): HistoryEntry | undefined {
  return history.find((entry) => {
    const size = sizeOf(entry);
    return entry.result === "Scaled" && !sameSize(size, current) && (to === undefined || sameSize(size, to));
  });
}

/** The size fields of the spec; `null` removes one. */
export type SizeChange = Readonly<Record<"replicaCpuMillicores" | "replicaMemoryGb", number | null>>;

/**
 * The change of the spec that returns to the entry. A size that was the tier's default is left to the tier again.
 * If the tier has another default by now, only a size in the spec brings back the old one.
 *
 * @param tier of the organization, if it is known
 */
export function changeTo(entry: HistoryEntry, spec: PipeScalingSpec, tier?: Tier): SizeChange {
  const { source, replicaCpuMillicores, replicaMemoryGb } = entry;
  const isDefault = !tier || sameSize(tier.defaultSize, sizeOf(entry));
  const isByTier = source === "TierDefault" && spec.replicaCpuMillicores !== undefined && isDefault;
  return isByTier
    ? { replicaCpuMillicores: null, replicaMemoryGb: null }
    : { replicaCpuMillicores, replicaMemoryGb };
}
