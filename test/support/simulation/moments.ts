import { actionOf } from "../../../src/kube/call.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { STEPS, type Step } from "../in-place-steps.ts";

const SECOND = 1000;

/** When something happens during a resize in place. */
export interface Moment {
  /** The step whose request has been sent. */
  readonly step: Step;
  /** Time until this request takes effect. */
  readonly delayMs: number;
  /** Delay of the watches of Deployments and PipeScalings. */
  readonly watchMs: number;
  /** For the title of a test. */
  readonly when: string;
}

export function before(step: Step): Moment {
  return { step, delayMs: 5, watchMs: 0, when: `before the ${step}` };
}

/** A slow API server: the step takes longer than a reconciliation waits for its writes, and watches are late. */
function during(step: Step): Moment {
  return { step, delayMs: 7 * SECOND, watchMs: 300, when: `during a slow ${step}` };
}

/** Before each step, and during each slow step. */
export const MOMENTS: readonly Moment[] = STEPS.flatMap((step) => [before(step), during(step)]);

/** Recognizes the requests of the steps, in the order of their arrival. */
export class StepRequests {
  #firstPod: string | undefined;

  /** Returns the step of a request; "rollout" if it is the one that replaces the pods. */
  next(request: KubeRequest): Step | "rollout" | undefined {
    const { verb, resource } = actionOf(request);
    if (verb !== "patch") return undefined;
    if (request.query?.["dryRun"] !== undefined) return "dry run";
    if (resource === "replicasets") return "write to the ReplicaSet";
    if (resource === "pods/resize") {
      this.#firstPod ??= request.path;
      return request.path === this.#firstPod ? "resize of the first pod" : "resize of the second pod";
    }
    const body = JSON.stringify(request.body ?? {});
    if (body.includes('"paused":true')) return "pause";
    if (body.includes('"paused":null')) return "resumption";
    return body.includes('"template":') ? "rollout" : undefined;
  }
}
