import * as z from "zod";
import { PIPE_SCALINGS } from "../../../crd/names.ts";
import type { PipeScaling } from "../../../crd/pipe-scaling.ts";
import type { KubeObject } from "../../../kube/objects.ts";
import { parseService } from "../../../records/service.ts";
import { defineCommand } from "../../command.ts";
import { clusterOptions, outputOption } from "../../common-options.ts";
import { CliError } from "../../failure.ts";
import { printOne, type Row } from "../../output.ts";
import { withRecords } from "../cluster.ts";
import { findService, serviceArgument } from "./find.ts";

export const showService = defineCommand({
  name: "show",
  summary: "show a service, and the state of its PipeScaling in short",
  examples: ["service show <uuid>", "service show <uuid> --output yaml"],
  arguments: z.object(serviceArgument),
  options: z.object({ ...outputOption, ...clusterOptions }),
  async run({ service: id, output, ...cluster }, io) {
    const shown = await withRecords(cluster, io, async (records) => {
      const { metadata, data } = await findService(records, id);
      const parsed = parseService(metadata.name, metadata.labels, data);
      if (!parsed.ok) {
        throw new CliError(
          `The record of service ${id} is malformed, put it right first (kubectl edit configmap ${metadata.name} --namespace ${records.namespace}): ${parsed.problem}.`,
        );
      }
      const { namespace } = parsed.value;
      const scaling = await records.get<PipeScaling & KubeObject>(PIPE_SCALINGS, id, namespace);
      return { ...parsed.value, ...(scaling ? stateOf(scaling) : NO_SCALING) };
    });
    printOne(io, output, shown);
  },
});

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
