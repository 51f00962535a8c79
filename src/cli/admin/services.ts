import { randomUUID } from "node:crypto";
import * as z from "zod";
import { KIND, PIPE_SCALINGS } from "../../crd/names.ts";
import type { HistoryEntry, PipeScaling } from "../../crd/pipe-scaling.ts";
import type { ConfigMap, KubeObject } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import { backupConfigMapName } from "../../records/backup.ts";
import { parseService, serviceConfigMap } from "../../records/service.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { option, UsageError } from "../../settings/option.ts";
import { namespaceName, nonEmptyText } from "../../settings/values.ts";
import { defineCommand } from "../command.ts";
import { outputOption, yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { printDetails, printList, printOne, type Row } from "../output.ts";
import { uuid } from "../values.ts";
import { withRecords } from "./connection.ts";
import {
  findOrganization,
  findOrganizationOf,
  findService,
  findWellFormedService,
  serviceArgument,
  servicesOf,
} from "./find.ts";
import {
  changedWindow,
  newRolloutWindowOption,
  rolloutWindowChange,
  rolloutWindowOption,
  rolloutWindowRow,
  rolloutWindowStateRow,
} from "./options.ts";
import { unlessChanged, untilUndisturbed } from "./retry.ts";

export const createService = defineCommand({
  name: "create",
  summary: "create a service of an organization",
  details:
    "Its pipes are the Deployments of the pipes' namespace that have the labels\n" +
    "pipes.clouddb.dev/service=<id of the service> and pipes.clouddb.dev/type=database.",
  examples: ["admin service create --organization <uuid> --name orders --pipes-namespace acme-pipes"],
  options: z.object({
    organization: option(uuid, { placeholder: "uuid", description: "id of the organization" }),
    name: option(nonEmptyText, { placeholder: "text", description: "name of the service" }),
    pipesNamespace: option(namespaceName, {
      placeholder: "name",
      description: "namespace where the service's pipes run",
    }),
    id: option(uuid.optional(), { placeholder: "uuid", description: "its id; without it a new one" }),
    ...rolloutWindowOption,
    ...outputOption,
    ...clusterSettings,
  }),
  async run(
    { organization, name, pipesNamespace, id = randomUUID(), rolloutWindow, output, ...cluster },
    io,
  ) {
    const service = { id, organizationId: organization, name, namespace: pipesNamespace };
    await withRecords(cluster, io, async (records) => {
      await findOrganization(records, organization);
      await records.create(
        CONFIG_MAPS,
        serviceConfigMap({ ...service, rolloutWindow }),
        `A service with the id ${id} already exists; it was not changed.`,
      );
    });
    printOne(io, output, { ...service, ...rolloutWindowRow(rolloutWindow) });
  },
});

export const listServices = defineCommand({
  name: "list",
  summary: "list the services",
  examples: ["admin service list", "admin service list --organization <uuid> --output json"],
  options: z.object({
    organization: option(uuid.optional(), {
      placeholder: "uuid",
      description: "only those of this organization",
    }),
    ...outputOption,
    ...clusterSettings,
  }),
  async run({ organization, output, ...cluster }, io) {
    const objects = await withRecords(cluster, io, (records) =>
      records.list<ConfigMap>(CONFIG_MAPS, "service", organization),
    );
    printList(
      io,
      output,
      ["id", "organizationId", "name", "namespace"],
      servicesOf(io, objects).map(({ id, organizationId, name, namespace }) => ({
        ...{ id, organizationId, name, namespace },
      })),
    );
  },
});

export const showService = defineCommand({
  name: "show",
  summary: "show a service, the state of its PipeScaling in short, and the history of its sizes",
  examples: ["admin service show <uuid>", "admin service show <uuid> --output yaml"],
  arguments: z.object(serviceArgument),
  options: z.object({ ...outputOption, ...clusterSettings }),
  async run({ service: id, output, ...cluster }, io) {
    const { shown, history } = await withRecords(cluster, io, async (records) => {
      const { service } = await findWellFormedService(records, id);
      const { organizationId, name, namespace } = service;
      const scaling = await records.get<PipeScaling & KubeObject>(PIPE_SCALINGS, id, namespace);
      const window =
        service.rolloutWindow ?? (await findOrganizationOf(records, organizationId, io))?.rolloutWindow;
      const shown = {
        ...{ id, organizationId, name, namespace },
        ...rolloutWindowStateRow(window, Date.now()),
        ...(scaling ? stateOf(scaling) : NO_SCALING),
      };
      return { shown, history: scaling?.status?.history ?? [] };
    });
    printDetails(io, output, shown, { history: { columns: HISTORY_COLUMNS, rows: history.map(historyRow) } });
  },
});

const HISTORY_COLUMNS = ["size", "source", "result", "startedAt", "completedAt", "requestId"];

function historyRow({ summary, source, result, startedAt, completedAt, requestId }: HistoryEntry): Row {
  return { size: summary, source, result, startedAt, completedAt, requestId };
}

const NO_SCALING = {
  reason: "NoPipeScaling",
  message: "The controller has not seen a pipe of this service yet.",
};

function stateOf({ spec, status }: PipeScaling): Row {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return {
    wanted: status?.desired?.summary,
    effective: status?.effective?.summary,
    pipes: status?.pipes?.summary,
    suspended: spec?.suspend ?? false,
    ready: ready?.status ?? "Unknown",
    reason: ready?.reason,
    message: ready?.message ?? "No controller has observed it yet.",
  };
}

export const updateService = defineCommand({
  name: "update",
  summary: "change the name or the rollout window of a service",
  details: "A service without a rollout window of its own has the window of its organization.",
  examples: [
    "admin service update <uuid> --name billing",
    "admin service update <uuid> --rollout-window '{schedule: \"0 2 * * 6\", duration: 4h, timeZone: Europe/Berlin}'",
    "admin service update <uuid> --rollout-window none",
  ],
  arguments: z.object(serviceArgument),
  options: z.object({
    name: option(nonEmptyText.optional(), {
      placeholder: "text",
      description: "its new name",
      flagOnly: true,
    }),
    ...newRolloutWindowOption,
    ...outputOption,
    ...clusterSettings,
  }),
  async run({ service: id, name, rolloutWindow, output, ...cluster }, io) {
    if (name === undefined && rolloutWindow === undefined) {
      throw new UsageError("There is nothing to change: give --name, --rollout-window or both.");
    }
    const change = name === undefined ? {} : { name };
    const before = await withRecords(cluster, io, (records) =>
      untilUndisturbed(`Service ${id}`, async () => {
        const { service, object } = await findWellFormedService(records, id);
        await records.change(CONFIG_MAPS, object, { ...change, ...rolloutWindowChange(rolloutWindow) });
        return service;
      }),
    );
    const { organizationId, namespace } = before;
    printOne(io, output, {
      ...{ id, organizationId, name: before.name, namespace, ...change },
      ...rolloutWindowRow(changedWindow(before.rolloutWindow, rolloutWindow)),
    });
  },
});

export const deleteService = defineCommand({
  name: "delete",
  summary: "delete the record of a service, with its backup settings",
  details:
    `Nothing is resized: its pipes keep the size that they have, and its ${KIND} stays, with that size, until\n` +
    "somebody deletes it with kubectl.",
  examples: ["admin service delete <uuid>", "admin service delete <uuid> --yes"],
  arguments: z.object(serviceArgument),
  options: z.object({ ...yesOption, ...clusterSettings }),
  async run({ service: id, yes, ...cluster }, io) {
    await withRecords(cluster, io, async (records) => {
      const object = await findService(records, id);
      const backup = await records.get<ConfigMap>(CONFIG_MAPS, backupConfigMapName(id));
      const { metadata, data } = object;
      const service = parseService(metadata.name, metadata.labels, data);
      // One that cannot be read can still be deleted.
      const what = service.ok ? `${service.value.name} (${id})` : id;
      await confirm(io, yes, `Delete service ${what}${backup ? " with its backup settings" : ""}?`);
      const end = records.uninterrupted();
      await unlessChanged(`The record of service ${id}`, async () => {
        if (backup) await end.delete(CONFIG_MAPS, backup);
        await end.delete(CONFIG_MAPS, object);
      });
    });
    io.err(`Service ${id} is deleted; its pipes, and its ${KIND}, stay as they are.\n`);
  },
});
