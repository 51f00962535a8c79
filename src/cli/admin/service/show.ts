import * as z from "zod";
import { PIPE_SCALINGS } from "../../../crd/names.ts";
import type { HistoryEntry, PipeScaling } from "../../../crd/pipe-scaling.ts";
import type { KubeObject } from "../../../kube/objects.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printDetails, type Row } from "../../output.ts";
import { withRecords } from "../cluster.ts";
import { rolloutWindowStateRow } from "../rollout-window.ts";
import { findWellFormedService, serviceArgument } from "./find.ts";
import { findOrganizationOf } from "./organization.ts";

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
  message: "No database pipe of this service has been seen yet.",
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
    message: ready?.message ?? "No controller has looked at it yet.",
  };
}
