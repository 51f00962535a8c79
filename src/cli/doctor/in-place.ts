import { keyOfPipe } from "../../controller/observe/workloads/kinds.ts";
import { podTemplateProblem } from "../../controller/observe/workloads/workload.ts";
import type { Cluster, Pipe, Scaling } from "./cluster.ts";
import { note, ok, type Result, warning } from "./result.ts";

/** First minor version whose kubelet reports by default what a resize in place needs. Resizes are stable from 1.35. */
const MIN_RESIZE_MINOR = 34;

const PAGE = "docs/explanation/in-place.md";

/** Finds the reasons why pipes cannot be resized in place, and why they were not at the last resize. */
export async function checkInPlace(cluster: Cluster): Promise<Result[]> {
  const scalings = await cluster.scalings();
  const wanted = await pipesInPlace(cluster);
  if (wanted.length === 0) return [];
  const { major, minor, gitVersion } = await cluster.version();
  const isOld = major === "1" && Number.parseInt(minor, 10) < MIN_RESIZE_MINOR;
  const results = [...wanted.flatMap(checkTemplate), ...scalings.flatMap(fallbacksOf)];
  if (isOld) {
    results.push(
      warning(
        `The cluster runs Kubernetes ${gitVersion}, so no pipe is resized in place, although its strategy asks for it: that needs 1.${MIN_RESIZE_MINOR} or later.`,
        "Upgrade the cluster, or choose the strategy Rollout: controller.config.resizeStrategy in the values of the chart, and spec.strategy of each PipeScaling that sets another one.",
      ),
    );
  }
  return results.length === 0
    ? [ok("Where resizes in place are wanted, the pod templates allow them.")]
    : results;
}

/** The pipes whose strategy is to resize them in place. */
export async function pipesInPlace(cluster: Cluster): Promise<readonly Pipe[]> {
  const controller = await cluster.controller();
  const scalings = await cluster.scalings();
  const strategies = new Map(
    scalings.map(({ metadata, spec }) => [`${metadata.namespace}/${metadata.name}`, spec?.strategy]),
  );
  return (await cluster.pipes()).filter(({ view: { metadata, serviceId } }) => {
    const strategy = strategies.get(`${metadata.namespace}/${serviceId}`) ?? controller?.resizeStrategy;
    return strategy !== undefined && strategy !== "Rollout";
  });
}

function checkTemplate({ view, template }: Pipe): Result[] {
  const { serviceId, container } = view;
  // The status of the PipeScaling reports an unclear container.
  if ("problem" in container) return [];
  const problem = podTemplateProblem(template, serviceId, container.name);
  if (!problem) return [];
  return [
    warning(
      `The pipe ${keyOfPipe(view)} cannot be resized in place: ${problem.message}.`,
      `Add it to the pod template (${PAGE}). This starts a rollout.`,
    ),
  ];
}

function fallbacksOf({ metadata, status }: Scaling): Result[] {
  return (status?.pipes?.fallbacks ?? []).map(({ pipe, reason, message }) =>
    note(
      `The pipe ${metadata.namespace}/${pipe} was not resized in place (${reason}): ${message}.`,
      `For the remedy of each reason, see ${PAGE}.`,
    ),
  );
}
