import * as z from "zod";
import { PIPE_SCALINGS } from "../../../crd/names.ts";
import type { PipeScaling } from "../../../crd/pipe-scaling.ts";
import type { RolloutWindow } from "../../../domain/rollout-window.ts";
import type { ConfigMap, KubeObject } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { organizationConfigMapName, parseOrganization } from "../../../records/organization.ts";
import { defineCommand } from "../../command.ts";
import { clusterOptions, outputOption } from "../../common-options.ts";
import type { Io } from "../../io.ts";
import { printOne, type Row } from "../../output.ts";
import { withRecords } from "../cluster.ts";
import type { Records } from "../records.ts";
import { rolloutWindowStateRow } from "../rollout-window.ts";
import { wellFormed } from "../well-formed.ts";
import { findWellFormedService, serviceArgument } from "./find.ts";

export const showService = defineCommand({
  name: "show",
  summary: "show a service, and the state of its PipeScaling in short",
  examples: ["service show <uuid>", "service show <uuid> --output yaml"],
  arguments: z.object(serviceArgument),
  options: z.object({ ...outputOption, ...clusterOptions }),
  async run({ service: id, output, ...cluster }, io) {
    const shown = await withRecords(cluster, io, async (records) => {
      const { service } = await findWellFormedService(records, id);
      const { organizationId, name, namespace } = service;
      const scaling = await records.get<PipeScaling & KubeObject>(PIPE_SCALINGS, id, namespace);
      const window = service.rolloutWindow ?? (await findInheritedWindow(records, organizationId, io));
      return {
        ...{ id, organizationId, name, namespace },
        ...rolloutWindowStateRow(window, Date.now()),
        ...(scaling ? stateOf(scaling) : NO_SCALING),
      };
    });
    printOne(io, output, shown);
  },
});

/** The window of the organization, if its record can be read. */
async function findInheritedWindow(
  records: Records,
  organizationId: string,
  io: Io,
): Promise<RolloutWindow | undefined> {
  const object = await records.get<ConfigMap>(CONFIG_MAPS, organizationConfigMapName(organizationId));
  const [organization] = wellFormed(io, object ? [object] : [], ({ metadata, data }) =>
    parseOrganization(metadata.name, data),
  );
  return organization?.rolloutWindow;
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
