import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect } from "vitest";
import { DATABASE_TYPE, RETRY_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { isCode } from "../../../src/kube/errors.ts";
import { collectionPath, PODS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { PipeOptions } from "../../support/fixtures/pipe.ts";
import type { TestEnvironment } from "../../support/test-environment.ts";
import { it } from "./fixtures.ts";

const PIPE = "pipe";

type Limit = readonly [kind: "ResourceQuota" | "LimitRange", spec: object];

interface Refusal {
  readonly limit: Limit;
  /** The limit is there when the pod is created. */
  readonly isFirst?: boolean;
  /** The message of the API server. */
  readonly message: string;
  /** Part of the remedy in the status. */
  readonly remedy: string;
}

const quota = (hard: Readonly<Record<string, string>>): Limit => ["ResourceQuota", { hard }];
const range = (item: object): Limit => ["LimitRange", { limits: [{ type: "Container", ...item }] }];

const REFUSALS: Readonly<Record<string, Refusal>> = {
  "a quota of CPU requests": {
    limit: quota({ "requests.cpu": "2" }),
    message: "exceeded quota: small",
    remedy: 'the ResourceQuota "small"',
  },
  "a quota of memory limits": {
    limit: quota({ "limits.memory": "8Gi" }),
    message: "exceeded quota: small",
    remedy: 'the ResourceQuota "small"',
  },
  "a quota that requires a CPU limit": {
    limit: quota({ "limits.cpu": "100" }),
    message: "failed quota: small: must specify limits.cpu",
    remedy: 'the ResourceQuota "small"',
  },
  "the largest memory of a LimitRange": {
    limit: range({ max: { memory: "8Gi" } }),
    message: "maximum memory usage per Container is 8Gi",
    remedy: "kubectl get limitranges",
  },
  "the default CPU limit of a LimitRange": {
    limit: range({ default: { cpu: "2" } }),
    isFirst: true,
    message: "must be less than or equal to cpu limit of 2",
    remedy: "kubectl get limitranges",
  },
  "the default CPU limit of a LimitRange that is newer than the pod": {
    limit: range({ default: { cpu: "2" } }),
    message: "must be less than or equal to cpu limit of 2",
    remedy: "kubectl get limitranges",
  },
  "the ratio of a LimitRange": {
    limit: range({ default: { cpu: "64" }, maxLimitRequestRatio: { cpu: "8" } }),
    message: "cpu max limit to request ratio per Container is 8",
    remedy: "kubectl get limitranges",
  },
};

const STRATEGIES: Readonly<Record<string, Partial<PipeOptions>>> = {
  Recreate: { strategy: "Recreate" },
  "maxSurge 0": { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
};

describe.each(Object.entries(REFUSALS))("a size that %s does not allow", (_what, refusal) => {
  it.for([
    ["InPlaceOrRollout", "Recreate"],
    ["InPlaceOrRollout", "maxSurge 0"],
    ["Rollout", "Recreate"],
    ["Rollout", "maxSurge 0"],
  ] as const)(
    "is reported with the remedy, restarts nothing, and is applied after the limit is gone, with the strategies %s and %s",
    async ([resizeStrategy, strategy], { environment, invariants }) => {
      const [kind, spec] = refusal.limit;
      const limit = async () => {
        const metadata = { name: "small", namespace: environment.pipes };
        await apply(environment.cluster, [{ apiVersion: "v1", kind, metadata, spec }]);
        await enforced(environment);
      };
      if (refusal.isFirst) await limit();
      invariants.accept(1);
      // In production, a search for room is repeated after a minute.
      const timeouts = { nodesMs: 0, roomRetry: { firstMs: 1000, mostMs: 5000 } };
      await environment.startController({ resizeStrategy }, { timeouts });
      await environment.createPipe({
        name: PIPE,
        cores: 1,
        podLabels: podLabels(environment),
        ...STRATEGIES[strategy],
      });
      await invariants.settled(1, { quietMs: 0 });
      if (!refusal.isFirst) await limit();
      const before = await state(environment);
      invariants.accept(4);
      await environment.requestSize(4);
      const { status } = await environment.waitForCondition("Stalled", "True");
      expect(status?.failures).toMatchObject([
        { pipe: PIPE, reason: "Refused", attempts: 1, nextRetryAt: expect.any(String) },
      ]);
      expect(status?.failures?.[0]?.message).toContain(refusal.message);
      expect(status?.failures?.[0]?.message).toContain(refusal.remedy);
      expect(await state(environment)).toEqual(before);
      await kubectl(environment.cluster, ["-n", environment.pipes, "delete", kind, "small"]);
      await gone(environment);
      // A pod keeps the default limit that it was created with.
      if (refusal.isFirst) await restart(environment);
      else await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
      await invariants.settled(4, { quietMs: 0 });
      await invariants.end();
    },
  );
});

/** The labels by which the controller sees pods. */
function podLabels({ serviceId }: TestEnvironment): Readonly<Record<string, string>> {
  return { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
}

/** Like `kubectl rollout restart`. */
function restart(environment: TestEnvironment): Promise<unknown> {
  const template = { metadata: { annotations: { restartedAt: "now" } } };
  return environment.patchPipe(PIPE, { spec: { template } });
}

async function state(environment: TestEnvironment): Promise<object> {
  const { items } = await environment.client.json<{ readonly items: readonly Pod[] }>({
    path: collectionPath(PODS, environment.pipes),
  });
  const { spec } = await environment.pipe(PIPE);
  return { spec, pods: items.map(({ metadata, spec }) => [metadata.uid, spec.containers[0]?.resources]) };
}

/** Waits until the API server rejects a new pod of the size. */
function enforced(environment: TestEnvironment): Promise<unknown> {
  return waitFor(async () => (await dryRun(environment)) !== undefined, { what: "the limit to be enforced" });
}

function gone(environment: TestEnvironment): Promise<unknown> {
  return waitFor(async () => (await dryRun(environment)) === undefined, { what: "the limit to end" });
}

/** Why the API server rejects a pod; `undefined` if it accepts it. */
function dryRun({ client, pipes }: TestEnvironment): Promise<string | undefined> {
  const requests = { cpu: "4", memory: "16Gi" };
  const containers = [{ name: "large", image: "large", resources: { requests, limits: { memory: "16Gi" } } }];
  const body = { metadata: { name: "large" }, spec: { containers } };
  return client
    .json({ method: "POST", path: collectionPath(PODS, pipes), query: { dryRun: "All" }, body })
    .then(
      () => undefined,
      (error: unknown) => {
        if (isCode(error, 403) || isCode(error, 422)) return error.message;
        throw error;
      },
    );
}
