import { randomUUID } from "node:crypto";
import { toPipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { KIND, PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import type { ConfigMap, KubeObject } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import { recordsNamedAfter } from "../../records/kinds.ts";
import { writtenWindow } from "../../records/rollout-window.ts";
import { type Service, serviceConfigMap, serviceConfigMapName } from "../../records/service.ts";
import { option } from "../../settings/option.ts";
import { namespaceName, nonEmptyText } from "../../settings/values.ts";
import { confirm } from "../confirm.ts";
import { outputOption, requireChange, uuid, yesOption } from "../options.ts";
import { HISTORY_COLUMNS, printList, printOne, type Row } from "../output.ts";
import { viewOf } from "../status/scaling-view.ts";
import { rowOfView } from "../view/rescale-view.ts";
import { recordsCommand } from "./command.ts";
import { ORGANIZATIONS, SERVICES } from "./kinds.ts";
import {
  idOption,
  newNameOption,
  newWindowOption,
  organizationOption,
  serviceArgument,
  windowChange,
  windowOption,
  windowRow,
} from "./options.ts";
import type { Records } from "./records.ts";
import { type Deletion, deleteUnlessChanged, requireUnchanged } from "./retry.ts";
import { openWindow } from "./service-open-window.ts";
import { rollback } from "./service-rollback.ts";

function rowOf({ rolloutWindow: window, ...service }: Service): Row {
  return { ...service, ...(window && { rolloutWindow: writtenWindow(window) }) };
}

const create = recordsCommand({
  name: "admin service create",
  summary: "create a service of an organization",
  details:
    "The pipes of the service are the Deployments and StatefulSets in the namespace of the pipes with the labels\n" +
    "pipes.clouddb.dev/service=<ID of the service> and pipes.clouddb.dev/type=database.",
  examples: ["admin service create --organization <uuid> --name orders --pipes-namespace acme-pipes"],
  options: {
    ...organizationOption,
    name: option(nonEmptyText, { placeholder: "text", description: "name of the service" }),
    pipesNamespace: option(namespaceName, {
      placeholder: "name",
      description: "namespace where the service's pipes run",
    }),
    ...idOption,
    ...windowOption,
    ...outputOption,
  },
  async run(records, { organization, name, pipesNamespace, id = randomUUID(), rolloutWindow, output }, io) {
    const service = { id, organizationId: organization, name, namespace: pipesNamespace, rolloutWindow };
    await ORGANIZATIONS.requireLive(records, organization);
    await SERVICES.create(records, id, serviceConfigMap(service));
    printOne(io, output, rowOf(service));
  },
});

const list = recordsCommand({
  name: "admin service list",
  summary: "list the services",
  examples: ["admin service list", "admin service list --organization <uuid> --output json"],
  options: {
    organization: option(uuid.optional(), {
      placeholder: "uuid",
      description: "show only services of this organization",
    }),
    ...outputOption,
  },
  async run(records, { organization, output }, io) {
    const services = await SERVICES.list(records, io, organization);
    printList(io, output, ["id", "organizationId", "name", "namespace"], services.map(rowOf));
  },
});

const show = recordsCommand({
  name: "admin service show",
  summary: "show a service, a summary of its PipeScaling, and the history of its sizes",
  options: { ...serviceArgument, ...outputOption },
  async run(records, { service: id, output }, io) {
    const { rolloutWindow, ...service } = await SERVICES.require(records, id);
    const object = await records.get<PipeScaling & KubeObject>(PIPE_SCALINGS, id, service.namespace);
    const scaling = object && toPipeScalingView(object);
    const window =
      rolloutWindow ?? (await ORGANIZATIONS.find(records, io, service.organizationId))?.rolloutWindow;
    const rows = (scaling?.status.history ?? []).map((entry) => {
      const { summary: size, source, result, startedAt, completedAt, requestId } = entry;
      return { size, source, result, startedAt, completedAt, requestId };
    });
    const nowMs = records.clock.now();
    const view = viewOf(service.name, scaling, nowMs);
    const shown = { ...service, ...windowRow(window, nowMs), ...rowOfView(view) };
    printOne(io, output, shown, { history: { columns: HISTORY_COLUMNS, rows } });
  },
});

const changes = { ...newNameOption, ...newWindowOption };

const update = recordsCommand({
  name: "admin service update",
  summary: "change the name or the rollout window of a service",
  details: "A service without its own rollout window uses the window of its organization.",
  examples: [
    "admin service update <uuid> --name billing",
    "admin service update <uuid> --rollout-window '{schedule: \"0 2 * * 6\", duration: 4h, timeZone: Europe/Berlin}'",
    "admin service update <uuid> --rollout-window none",
  ],
  options: { ...serviceArgument, ...changes, ...outputOption },
  check: (values) => requireChange(changes, values),
  async run(records, { service: id, name, rolloutWindow, output }, io) {
    const change = { name, rolloutWindow: windowChange(rolloutWindow) };
    printOne(io, output, rowOf(await SERVICES.change(records, id, () => change)));
  },
});

const remove = recordsCommand({
  name: "admin service delete",
  summary: "delete the record of a service, with its settings",
  details:
    `Nothing is resized: the pipes keep their size. The ${KIND} stays until you delete it with kubectl.\n` +
    "If the service is deleted already, the command deletes settings that it left.",
  options: { ...serviceArgument, ...yesOption },
  async run(records, { service: id, yes }, io) {
    const before = await recordsOf(records, id);
    const { settings, service } = before;
    if (settings.length === 0 && !service) await SERVICES.requireObject(records, id);
    const what = service
      ? `${SERVICES.describe(service, id)}${settings.length > 0 ? " with its settings" : ""}`
      : `the settings that service ${id} has left`;
    await confirm(io, yes, `Delete ${what}?`);
    // The API may have created settings since the question.
    const now = await recordsOf(records, id);
    const record = `The record of service ${id}`;
    requireUnchanged(record, before.all, now.all);
    await deleteUnlessChanged(records, record, now.all.map(toDeletion), async (end) => {
      const after = await recordsOf(end, id);
      return after.service ? [] : after.all.map(toDeletion);
    });
    io.err(
      service
        ? `Service ${id} is deleted; its pipes, and its ${KIND}, stay as they are.\n`
        : `The settings of service ${id} are deleted.\n`,
    );
  },
});

async function recordsOf(records: Records, id: string) {
  const get = (name: string) => records.get<ConfigMap>(CONFIG_MAPS, name);
  const name = serviceConfigMapName(id);
  // The settings are read first: if a service with this ID is created later, its settings have a newer version, so they
  // are not deleted with those of the old service.
  const others = [...recordsNamedAfter("service", id).keys()].filter((each) => each !== name);
  const settings = (await Promise.all(others.map(get))).flatMap((each) => each ?? []);
  const service = await get(name);
  return { settings, service, all: service ? [...settings, service] : settings };
}

function toDeletion(object: ConfigMap): Deletion {
  return { resource: CONFIG_MAPS, object };
}

export const serviceCommands = [create, list, show, update, openWindow, rollback, remove];
