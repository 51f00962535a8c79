import * as z from "zod";
import type { KubeClient } from "../../kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../kube/errors.ts";
import type { ConfigMap } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import { parseOrganization } from "../../records/organization.ts";
import type { Service } from "../../records/service.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { UsageError } from "../../settings/option.ts";
import { nonEmptyText } from "../../settings/values.ts";
import { withClient } from "../admin/connection.ts";
import { servicesOf } from "../admin/find.ts";
import { Records } from "../admin/records.ts";
import { argument } from "../argument.ts";
import { defineCommand } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { EXIT_DONE, EXIT_UNHEALTHY } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { type Format, printData, printList } from "../output.ts";
import { exitCodeOf, follow, progressOnStderr } from "../view/follow.ts";
import { poll } from "../view/poll.ts";
import { requireWatch, watchOptions } from "../view/watch-options.ts";
import { dataRow, nextSteps, type PrintContext, printService, tableRow } from "./print.ts";
import { oldTierOf, viewOf } from "./scaling-view.ts";
import {
  findServiceNamed,
  type Organizations,
  readServiceStatus,
  readStatuses,
  type ServiceStatus,
} from "./services.ts";

export const status = defineCommand({
  name: "status",
  summary: "show the progress of rescales",
  details:
    "Without a service, prints a table of all services. With the id or the name of a service, prints its pending\n" +
    "pipes, failures and the next steps; --watch waits for the outcome and shows the progress. Exits with 3 if a\n" +
    "rescale failed or is suspended.\n\n" +
    "Needs permission to list ConfigMaps in the namespace of the records, and PipeScalings in the namespaces of\n" +
    "the pipes.",
  examples: [
    "status",
    "status orders",
    "status orders --watch --timeout 15m",
    "status 01234567-89ab-4cde-8f01-23456789abcd --output json",
  ],
  arguments: z.object({
    service: argument(nonEmptyText.optional(), {
      description: "id or name of a service; default: all services",
    }),
  }),
  options: z.object({
    ...watchOptions,
    ...outputOption,
    ...clusterSettings,
  }),
  async run({ service: named, watch, timeout: timeoutMs, output, kubeconfig, namespace }, io) {
    if (watch && named === undefined) throw new UsageError("--watch needs a service: name one.");
    requireWatch(watch, timeoutMs);
    return await withClient(kubeconfig, async (client) => {
      const records = new Records(client, namespace, io.signal);
      const [services, organizations] = await Promise.all([
        records.list<ConfigMap>(CONFIG_MAPS, "service"),
        organizationsOf(records),
      ]);
      const context = { organizations, records: namespace, nowMs: Date.now() };
      if (named === undefined) return showAll(io, output, client, servicesOf(io, services), context);
      const service = findServiceNamed(services, named, namespace);
      const first = await readServiceStatus(client, service, undefined, io.signal);
      const oldTier = oldTierOf(first.scaling, organizations.get(service.organizationId));
      if (!watch) {
        const view = viewOf(service.name, first.scaling, oldTier);
        return showOne(io, output, { ...first, view }, context);
      }
      const read = () => readServiceStatus(client, service, oldTier, io.signal);
      return await watchOne(io, output, read, context, timeoutMs);
    });
  },
});

/** Without organizations whose records are malformed. */
async function organizationsOf(records: Records): Promise<Organizations> {
  const objects = await records.list<ConfigMap>(CONFIG_MAPS, "organization");
  return new Map(
    objects.flatMap(({ metadata, data }) => {
      const parsed = parseOrganization(metadata.name, data);
      return parsed.ok ? [[parsed.value.id, parsed.value]] : [];
    }),
  );
}

async function showAll(
  io: Io,
  output: Format,
  client: KubeClient,
  services: readonly Service[],
  context: PrintContext,
): Promise<number> {
  const { organizations } = context;
  const statuses = await readStatuses(client, services, organizations, io.signal);
  if (output !== "table") {
    const rows = statuses.map((each) => dataRow(each, organizations));
    printData(io, output, rows);
  } else if (statuses.length === 0) {
    io.err("There is no service yet: see pipe-scaling admin service create --help.\n");
  } else {
    const columns = ["name", "organization", "desired", "effective", "pipes", "state", "since", "reason"];
    const rows = statuses.map((each) => tableRow(each, context));
    printList(io, output, columns, rows);
  }
  const isUnhealthy = statuses.some(({ view }) => exitCodeOf(view) === EXIT_UNHEALTHY);
  return isUnhealthy ? EXIT_UNHEALTHY : EXIT_DONE;
}

function showOne(io: Io, output: Format, status: ServiceStatus, context: PrintContext): number {
  if (output === "table") printService(io, status, context);
  else printData(io, output, dataRow(status, context.organizations));
  return exitCodeOf(status.view);
}

const POLL_MS = 1000;

/** With json or yaml the progress goes to standard error, and the outcome to standard output. */
async function watchOne(
  io: Io,
  output: Format,
  read: () => Promise<ServiceStatus>,
  { organizations, records }: PrintContext,
  timeoutMs: number | undefined,
): Promise<number> {
  let last: ServiceStatus | undefined;
  const readView = async () => {
    last = await read();
    return { view: last.view };
  };
  const exitCode = await follow(
    output === "table" ? io : progressOnStderr(io),
    (signal) => poll({ read: readView, retryAfterMs, intervalMs: POLL_MS, isKnownToWork: true }, signal),
    { timeoutMs },
  );
  if (output !== "table" && last) printData(io, output, dataRow(last, organizations));
  const steps = exitCode === EXIT_UNHEALTHY && last ? nextSteps(last, records) : [];
  for (const step of steps) io.err(`${step}\n`);
  return exitCode;
}

/** An unavailable API server may become available again; a missing permission needs a person. */
function retryAfterMs(error: unknown): number | undefined {
  const isTransient =
    error instanceof KubeUnreachableError ||
    (error instanceof KubeApiError && (error.code === 429 || error.code >= 500));
  if (!isTransient) return undefined;
  return error instanceof KubeApiError ? (error.retryAfterMs ?? 0) : 0;
}
