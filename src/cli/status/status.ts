import * as z from "zod";
import type { KubeClient } from "../../kube/client.ts";
import type { ConfigMap } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import { parseOrganization } from "../../records/organization.ts";
import type { Service } from "../../records/service.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { UsageError } from "../../settings/option.ts";
import { nonEmptyText } from "../../settings/values.ts";
import { Records } from "../admin/records.ts";
import { servicesOf } from "../admin/service/read.ts";
import { withClient } from "../admin/with-client.ts";
import { argument } from "../argument.ts";
import { defineCommand } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { EXIT_DONE, EXIT_UNHEALTHY } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { type Format, printData, printList } from "../output.ts";
import { exitCodeOf } from "../view/follow.ts";
import { requireWatch, watchOptions } from "../view/watch-options.ts";
import { type Look, lookAt } from "./look.ts";
import { nextSteps } from "./next-steps.ts";
import { printService, type Surroundings } from "./print-service.ts";
import { dataRow, type Organizations, pipeRow, tableRow } from "./rows.ts";
import { oldTierOf, viewOf } from "./scaling-view.ts";
import { serviceNamed } from "./service-named.ts";
import { ServiceNews } from "./service-news.ts";
import { type ServiceStanding, standings } from "./services.ts";
import { watchService } from "./watch-service.ts";

export const status = defineCommand({
  name: "status",
  summary: "show how far the rescales of services are",
  details:
    "Without a service, a table of all of them. With one, by its id or its name, each of its pipes, what\n" +
    "stands in the way, and what to do next; --watch goes on until the outcome, drawn in place on a terminal\n" +
    "and line by line elsewhere. Ends with 3 if a rescale failed or is suspended.\n\n" +
    "Needs no more than the right to list ConfigMaps in the namespace of the records, and to get, list and\n" +
    "watch PipeScalings, Deployments and Pods where the pipes run; without that to Deployments and Pods it\n" +
    "shows what the PipeScaling tells.",
  examples: [
    "status",
    "status orders",
    "status orders --watch --timeout 15m",
    "status 01234567-89ab-4cde-8f01-23456789abcd --output json",
  ],
  arguments: z.object({
    service: argument(nonEmptyText.optional(), {
      description: "id or name of a service; without it all of them",
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
    let news: ServiceNews | undefined;
    return await withClient(
      kubeconfig,
      async (client) => {
        const records = new Records(client, namespace, io.signal);
        const [services, organizations] = await Promise.all([
          records.list<ConfigMap>(CONFIG_MAPS, "service"),
          organizationsOf(records),
        ]);
        if (named === undefined) return showAll(io, output, client, servicesOf(io, services), organizations);
        const service = serviceNamed(services, named, namespace);
        const look = await lookAt(client, service, io.signal);
        noteUnread(io, service, look);
        const oldTier = oldTierOf(look.scaling, organizations.get(service.organizationId));
        const surroundings = { organizations, records: namespace, nowMs: Date.now() };
        if (!watch) return showOne(io, output, standingBy(service, look, oldTier), surroundings);
        news = new ServiceNews(service, look, oldTier);
        const exitCode = await watchService(io, output === "table", client, news, timeoutMs);
        const { latest } = news;
        if (output !== "table" && latest) printData(io, output, fullRow(latest, organizations));
        const steps = exitCode === EXIT_UNHEALTHY && latest ? nextSteps(latest, namespace) : [];
        for (const step of steps) io.err(`${step}\n`);
        return exitCode;
      },
      (call) => news?.onCall(call),
    );
  },
});

/** One that cannot be read is as one that is not there: it is not what was asked for. */
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
  organizations: Organizations,
): Promise<number> {
  const found = await standings(client, services, organizations, io.signal);
  const nowMs = Date.now();
  if (output !== "table") {
    printData(
      io,
      output,
      found.map((each) => dataRow(each, organizations)),
    );
  } else if (found.length === 0) {
    io.err("There is no service yet: see admin service create --help.\n");
  } else {
    printList(
      io,
      output,
      ["name", "organization", "wanted", "effective", "pipes", "state", "since", "reason"],
      found.map((each) => tableRow(each, organizations, nowMs)),
    );
  }
  return found.some(({ view }) => exitCodeOf(view) === EXIT_UNHEALTHY) ? EXIT_UNHEALTHY : EXIT_DONE;
}

function standingBy(
  service: Service,
  { scaling, pipes }: Look,
  oldTier: string | undefined,
): ServiceStanding {
  return { service, scaling, view: viewOf(service.name, scaling, pipes, oldTier) };
}

function showOne(io: Io, output: Format, standing: ServiceStanding, surroundings: Surroundings): number {
  if (output === "table") printService(io, standing, surroundings);
  else printData(io, output, fullRow(standing, surroundings.organizations));
  return exitCodeOf(standing.view);
}

function fullRow(standing: ServiceStanding, organizations: Organizations) {
  return { ...dataRow(standing, organizations), eachPipe: standing.view.lines.map(pipeRow) };
}

function noteUnread(io: Io, { namespace }: Service, { pipes }: Look): void {
  if (!pipes) {
    io.err(
      `You may not list the Deployments of the namespace ${namespace}: of its pipes only those that failed are shown.\n`,
    );
  }
}
