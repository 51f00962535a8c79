import { randomUUID } from "node:crypto";
import * as z from "zod";
import { KIND, PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import type { ConfigMap, KubeObject } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import { backupConfigMapName } from "../../records/backup.ts";
import { type Service, serviceConfigMap } from "../../records/service.ts";
import { option } from "../../settings/option.ts";
import { namespaceName, nonEmptyText } from "../../settings/values.ts";
import { outputOption, yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { printList, printOne, type Row } from "../output.ts";
import { uuid } from "../values.ts";
import { recordsCommand } from "./command.ts";
import {
  changeRecord,
  createRecord,
  listRecords,
  ORGANIZATIONS,
  organizationOf,
  requireObject,
  requireRecord,
  SERVICES,
  serviceArgument,
} from "./kinds.ts";
import {
  idOption,
  newNameOption,
  newRolloutWindowOption,
  organizationOption,
  requireChange,
  rolloutWindowChange,
  rolloutWindowOption,
  rolloutWindowRow,
  rolloutWindowStateRow,
} from "./options.ts";
import { deleteUnlessChanged } from "./retry.ts";

function rowOf({ id, organizationId, name, namespace, rolloutWindow }: Service): Row {
  return { id, organizationId, name, namespace, ...rolloutWindowRow(rolloutWindow) };
}

export const createService = recordsCommand({
  name: "create",
  summary: "create a service of an organization",
  details:
    "Its pipes are the Deployments of the pipes' namespace that have the labels\n" +
    "pipes.clouddb.dev/service=<id of the service> and pipes.clouddb.dev/type=database.",
  examples: ["admin service create --organization <uuid> --name orders --pipes-namespace acme-pipes"],
  options: z.object({
    ...organizationOption,
    name: option(nonEmptyText, { placeholder: "text", description: "name of the service" }),
    pipesNamespace: option(namespaceName, {
      placeholder: "name",
      description: "namespace where the service's pipes run",
    }),
    ...idOption,
    ...rolloutWindowOption,
    ...outputOption,
  }),
  async run(records, { organization, name, pipesNamespace, id = randomUUID(), rolloutWindow, output }, io) {
    const service = { id, organizationId: organization, name, namespace: pipesNamespace, rolloutWindow };
    await requireRecord(records, ORGANIZATIONS, organization);
    await createRecord(records, SERVICES, id, serviceConfigMap(service));
    printOne(io, output, rowOf(service));
  },
});

export const listServices = recordsCommand({
  name: "list",
  summary: "list the services",
  examples: ["admin service list", "admin service list --organization <uuid> --output json"],
  options: z.object({
    organization: option(uuid.optional(), {
      placeholder: "uuid",
      description: "only those of this organization",
    }),
    ...outputOption,
  }),
  async run(records, { organization, output }, io) {
    const services = await listRecords(records, io, SERVICES, organization);
    printList(io, output, ["id", "organizationId", "name", "namespace"], services.map(rowOf));
  },
});

const HISTORY_COLUMNS = ["size", "source", "result", "startedAt", "completedAt", "requestId"];

export const showService = recordsCommand({
  name: "show",
  summary: "show a service, the state of its PipeScaling in short, and the history of its sizes",
  examples: ["admin service show <uuid>", "admin service show <uuid> --output yaml"],
  arguments: z.object(serviceArgument),
  options: z.object(outputOption),
  async run(records, { service: id, output }, io) {
    const { record } = await requireRecord(records, SERVICES, id);
    const { organizationId, name, namespace } = record;
    const scaling = await records.get<PipeScaling & KubeObject>(PIPE_SCALINGS, id, namespace);
    const window = record.rolloutWindow ?? (await organizationOf(records, io, record))?.rolloutWindow;
    const rows = (scaling?.status?.history ?? []).map(
      ({ summary, source, result, startedAt, completedAt, requestId }) => {
        return { size: summary, source, result, startedAt, completedAt, requestId };
      },
    );
    const shown = { id, organizationId, name, namespace, ...rolloutWindowStateRow(window) };
    printOne(io, output, { ...shown, ...stateOf(scaling) }, { history: { columns: HISTORY_COLUMNS, rows } });
  },
});

function stateOf(scaling: PipeScaling | undefined): Row {
  if (!scaling) {
    const message = "The controller has not seen a pipe of this service yet.";
    return { reason: "NoPipeScaling", message };
  }
  const { spec, status } = scaling;
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

export const updateService = recordsCommand({
  name: "update",
  summary: "change the name or the rollout window of a service",
  details: "A service without a rollout window of its own has the window of its organization.",
  examples: [
    "admin service update <uuid> --name billing",
    "admin service update <uuid> --rollout-window '{schedule: \"0 2 * * 6\", duration: 4h, timeZone: Europe/Berlin}'",
    "admin service update <uuid> --rollout-window none",
  ],
  arguments: z.object(serviceArgument),
  options: z.object({ ...newNameOption, ...newRolloutWindowOption, ...outputOption }),
  check: ({ name, rolloutWindow }) =>
    requireChange([name, rolloutWindow], "--name, --rollout-window or both"),
  async run(records, { service: id, name, rolloutWindow, output }, io) {
    const change = { ...(name === undefined ? {} : { name }), ...rolloutWindowChange(rolloutWindow) };
    const { record } = await changeRecord(records, SERVICES, { id }, () => change);
    printOne(io, output, rowOf(record));
  },
});

export const deleteService = recordsCommand({
  name: "delete",
  summary: "delete the record of a service, with its backup settings",
  details:
    `Nothing is resized: its pipes keep the size that they have, and its ${KIND} stays, with that size, until\n` +
    "somebody deletes it with kubectl.",
  examples: ["admin service delete <uuid>", "admin service delete <uuid> --yes"],
  arguments: z.object(serviceArgument),
  options: z.object(yesOption),
  async run(records, { service: id, yes }, io) {
    const object = await requireObject(records, SERVICES, id);
    const backup = await records.get<ConfigMap>(CONFIG_MAPS, backupConfigMapName(id));
    // A malformed record can be deleted, too.
    const service = SERVICES.parse(object);
    const what = service.ok ? `${service.value.name} (${id})` : id;
    await confirm(io, yes, `Delete service ${what}${backup ? " with its backup settings" : ""}?`);
    const end = records.uninterrupted();
    await deleteUnlessChanged(`The record of service ${id}`, async () => {
      if (backup) await end.delete(CONFIG_MAPS, backup);
      await end.delete(CONFIG_MAPS, object);
    });
    io.err(`Service ${id} is deleted; its pipes, and its ${KIND}, stay as they are.\n`);
  },
});
