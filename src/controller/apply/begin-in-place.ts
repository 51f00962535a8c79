import { formatSize, sameSize } from "../../domain/size.ts";
import type { Deployment } from "../../kube/objects.ts";
import type { InPlaceAction } from "../decide/actions.ts";
import { podTemplateProblem } from "../in-place/pod-template.ts";
import type { Fallback } from "../in-place/view.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { formatLastRollout, type LastRollout } from "../observe/last-rollout.ts";
import type { WriteError } from "../observe/write-record.ts";
import type { InPlaceApplier } from "./in-place.ts";
import { commitPatch, pipePatch } from "./pipe-patch.ts";
import { type LabelSelector, readDeployment, type WholeDeployment } from "./whole-deployment.ts";
import { writeErrorOf } from "./write-error.ts";

type BeginApplier = Pick<InPlaceApplier, "client" | "resizes" | "writes" | "clock">;
type FailedWrite = WriteError & { readonly reason: "WriteFailed" };
type BeginAction = Extract<InPlaceAction, { readonly type: "begin-in-place" }>;

/** Checks whether the template can follow without a rollout, and then watches the pods. */
export async function beginInPlace(applier: BeginApplier, action: BeginAction): Promise<void> {
  const { client, resizes, writes } = applier;
  const { pipe, size, rollout } = action;
  const lastWrite = writes.records.get(pipe.metadata.uid);
  const isCommitted = sameSize(pipe.size, size);
  await resizes.begin(pipe, formatSize(size), async (isCurrent) => {
    const current = await readDeployment(client, pipe);
    if (!current) return undefined;
    const problem = rollout
      ? (podTemplateProblem(current.spec.template, pipe.serviceId, action.container) ??
        (isCommitted ? undefined : await templateProblem(client, { ...action, rollout }, current)))
      : undefined;
    if (problem?.reason === "WriteFailed") {
      // The Deployment may have been deleted or written meanwhile.
      const isLast = writes.records.get(pipe.metadata.uid) === lastWrite;
      if (isCurrent() && isLast && rollout) recordFailure(applier, pipe, rollout, problem);
      return undefined;
    }
    return problem ?? { selector: selectorText(current.spec.selector) };
  });
}

/** The dry run is repeated after the delay of a failed write, because a rollout restarts the pods. */
function recordFailure(
  { writes, clock }: BeginApplier,
  pipe: DeploymentView,
  rollout: LastRollout,
  problem: WriteError,
): void {
  const { uid, generation } = pipe.metadata;
  writes.begin(uid, "resize", rollout, clock.now());
  writes.failed(uid, problem, generation, clock.now());
}

/** If a webhook changes the template, it would not equal that of the ReplicaSet, and a rollout would start. */
async function templateProblem(
  client: InPlaceApplier["client"],
  { pipe, container, rollout }: BeginAction & { readonly rollout: LastRollout },
  current: WholeDeployment,
): Promise<Fallback | FailedWrite | undefined> {
  const annotation = formatLastRollout(rollout, pipe.metadata.uid);
  const {
    message: _,
    query,
    ...request
  } = pipePatch(pipe, annotation, commitPatch({ pipe, container }, rollout.size));
  let committed: WholeDeployment;
  try {
    committed = await client.json({ ...request, query: { ...query, dryRun: "All" } });
  } catch (error) {
    const problem = writeErrorOf(error);
    if (!problem) throw error;
    if (problem.reason === "WriteFailed") return { ...problem, reason: "WriteFailed" };
    return { reason: "Refused", message: problem.message };
  }
  const text = ({ spec }: WholeDeployment) => JSON.stringify(withoutSize(spec, container));
  if (text(committed) === text(current)) return undefined;
  return { reason: "TemplateChanged", message: "something changes the pod template at each write" };
}

function withoutSize({ paused: _, template, ...spec }: Deployment["spec"], name: string): object {
  const containers = template.spec.containers.map((container) =>
    container.name === name ? { ...container, resources: withoutAmounts(container.resources) } : container,
  );
  return { ...spec, template: { ...template, spec: { ...template.spec, containers } } };
}

function withoutAmounts(
  resources: Deployment["spec"]["template"]["spec"]["containers"][number]["resources"],
): object {
  const { cpu: _c, memory: _m, ...requests } = resources?.requests ?? {};
  const { cpu: _l, memory: _n, ...limits } = resources?.limits ?? {};
  return { requests, limits };
}

/** As in the query of a list. */
function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    const texts = {
      In: `${key} in (${values.join(",")})`,
      NotIn: `${key} notin (${values.join(",")})`,
      Exists: key,
      DoesNotExist: `!${key}`,
    };
    return texts[operator];
  });
  return [...labels, ...expressions].join(",");
}
