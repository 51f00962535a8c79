import * as z from "zod";
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
import { KubeUnreachableError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Service } from "../../records/service.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { option } from "../../settings/option.ts";
import { readTiers, tiersFileSetting } from "../../settings/tiers.ts";
import { integer, onOff } from "../../settings/values.ts";
import { defineCommand, PROGRAM } from "../command.ts";
import { outputOption, recordsFlag } from "../common-options.ts";
import { CliError } from "../failure.ts";
import { printOne } from "../output.ts";
import { desiredSize } from "../status/scaling-view.ts";
import { withRecords } from "./connection.ts";
import { findOrganizationOf, findWellFormedService, serviceArgument } from "./find.ts";
import type { Records } from "./records.ts";
import { untilUndisturbed } from "./retry.ts";

export const rollbackService = defineCommand({
  name: "rollback",
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
  arguments: z.object(serviceArgument),
  options: z.object({
    to: option(integer(CPU_MINIMUM_MILLICORES / 1000, CPU_MAXIMUM_MILLICORES / 1000).optional(), {
      placeholder: "cores",
      description: "an older size of the history, by the CPU cores of each replica",
      flagOnly: true,
    }),
    now: option(onOff, {
      description: "do not wait for the rollout window, for the next 2 hours",
      default: "false",
    }),
    dryRun: option(onOff, {
      description: "print the size and write nothing",
      default: "false",
    }),
    ...tiersFileSetting,
    ...outputOption,
    ...clusterSettings,
  }),
  async run({ service: id, to: cores, now, dryRun, tiersFile, output, ...cluster }, io) {
    const tiers = readTiers(tiersFile);
    const to = cores === undefined ? undefined : sizeOfCores(cores);
    const { service, plan, tier } = await withRecords(cluster, io, async (records) => {
      const { service } = await findWellFormedService(records, id);
      // Before the write: a failed read after it would look as if nothing was done.
      const organization = await findOrganizationOf(records, service.organizationId, io);
      const tier = organization && tiers.get(organization.tier);
      const plan = await rollBack(records, service, { to, now, dryRun, tier });
      return { service, plan, tier };
    });
    const { name, namespace } = service;
    printOne(io, output, {
      ...{ id, name, namespace },
      from: plan.from && describeSize(plan.from),
      to: plan.entry.summary,
    });
    for (const note of sizeNotes(plan, tier)) io.err(`${note}\n`);
    if (plan.isSuspended) {
      io.err("The service is suspended: no pipe is resized until it is resumed.\n");
    }
    io.err(
      dryRun
        ? "Dry run: nothing was written.\n"
        : `To watch the rescale: ${PROGRAM} status ${id} --watch${recordsFlag(cluster.namespace)}\n`,
    );
  },
});

interface Plan {
  readonly from: Size | undefined;
  readonly entry: HistoryEntry;
  readonly change: SizeChange;
  readonly isSuspended: boolean;
}

interface Wishes {
  readonly to: Size | undefined;
  readonly now: boolean;
  readonly dryRun: boolean;
  readonly tier: Tier | undefined;
}

/** Status updates of the controller are no reason to stop; a change of the spec is. */
function rollBack(records: Records, service: Service, wishes: Wishes): Promise<Plan> {
  const { now, dryRun } = wishes;
  let first: PipeScalingView | undefined;
  return untilUndisturbed(`The PipeScaling of service ${service.id}`, async () => {
    const scaling = await readScaling(records, service);
    first ??= scaling;
    if (!isSameSpec(first, scaling)) {
      throw new CliError(
        `The PipeScaling of service ${service.id} was changed at the same time, and this command wrote nothing: see admin service show ${service.id}, then run the command again if the rollback is still needed.`,
      );
    }
    const plan = planFor(scaling, service, wishes);
    if (!dryRun) await write(records, scaling, plan, now);
    return plan;
  });
}

/** How long `--now` lets rollouts start outside of the rollout window. */
const IGNORE_WINDOW_MS = 2 * 3_600_000;

/** The size no longer comes from an API request, even if an older request was for the same size. */
async function write(
  records: Records,
  scaling: PipeScalingView,
  { change }: Plan,
  now: boolean,
): Promise<void> {
  const until = new Date(Date.now() + IGNORE_WINDOW_MS).toISOString();
  try {
    await records.changeSpec(PIPE_SCALINGS, scaling, change, {
      [REQUEST_ANNOTATION]: null,
      ...(now ? { [IGNORE_WINDOW_ANNOTATION]: until } : {}),
    });
  } catch (error) {
    if (!(error instanceof KubeUnreachableError)) throw error;
    const { name } = scaling.metadata;
    throw new CliError(
      `The write got no response, so the size of service ${name} may have changed: see admin service show ${name} before you run the command again, because a second rollback returns to the size before the first one (${error.message}).`,
      { cause: error },
    );
  }
}

async function readScaling(records: Records, { id, namespace }: Service): Promise<PipeScalingView> {
  const object = await records.get<PipeScaling & KubeObject>(PIPE_SCALINGS, id, namespace);
  if (!object) {
    throw new CliError(
      `Service ${id} has no PipeScaling in the namespace ${namespace}, so there is no size to return to. The controller creates it when it sees the first database pipe of the service.`,
    );
  }
  const scaling = toPipeScalingView(object);
  if (scaling.isBeingDeleted) {
    throw new CliError(
      `The PipeScaling of service ${id} is being deleted: wait until it is gone. The controller creates another one with the size of the pipes.`,
    );
  }
  return scaling;
}

function isSameSpec({ metadata: a }: PipeScalingView, { metadata: b }: PipeScalingView): boolean {
  return a.uid === b.uid && a.generation === b.generation;
}

function planFor(scaling: PipeScalingView, { id }: Service, { to, tier }: Wishes): Plan {
  const { spec, status } = scaling;
  const from = desiredSize(scaling);
  const { history = [] } = status;
  if (to && sameSize(from, to)) {
    throw new CliError(
      `The size of service ${id} is ${describeSize(to)} already: there is nothing to roll back.`,
    );
  }
  const entry = findPrevious(history, from, to);
  if (!entry) throw new CliError(`${noSuchSize(id, from, to)} See admin service show ${id} for the history.`);
  return { from, entry, change: changeTo(entry, spec, tier), isSuspended: spec.suspend ?? false };
}

function noSuchSize(id: string, from: Size | undefined, to: Size | undefined): string {
  if (to) return `In the history of service ${id} there is no rescale to ${describeSize(to)} that completed.`;
  const other = from ? ` other than ${describeSize(from)}` : "";
  return `The history of service ${id} has no previous size: no rescale to a size${other} has completed.`;
}

function sizeNotes({ entry, change }: Plan, tier: Tier | undefined): string[] {
  if (change.replicaCpuMillicores === null) {
    return [
      `The size is removed from the PipeScaling, because ${entry.summary} was the default of the organization's tier: the tier decides the size again.`,
    ];
  }
  const size = sizeOfEntry(entry);
  if (!tier || smaller(size, tier.maximumSize) === size) return [];
  return [
    `The tier ${tier.name} allows ${describeSize(tier.maximumSize)} at most: the pipes get that size, and the PipeScaling reports TierLimited.`,
  ];
}

export function sizeOfEntry({ replicaCpuMillicores, replicaMemoryGb }: HistoryEntry): Size {
  return { cpuMillicores: replicaCpuMillicores, memoryGib: replicaMemoryGb };
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
    const size = sizeOfEntry(entry);
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
  const isDefault = !tier || sameSize(tier.defaultSize, sizeOfEntry(entry));
  const isByTier = source === "TierDefault" && spec.replicaCpuMillicores !== undefined && isDefault;
  return isByTier
    ? { replicaCpuMillicores: null, replicaMemoryGb: null }
    : { replicaCpuMillicores, replicaMemoryGb };
}
