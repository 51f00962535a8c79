import { describe, expect, it } from "vitest";
import {
  type CommitFacts,
  firstStep,
  pausedStep as stepOf,
} from "../../../../src/controller/apply/workloads/deployment.ts";
import { type Resources, resourcesFor } from "../../../../src/controller/observe/resources.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { Container, PodTemplate } from "../../../../src/kube/pods.ts";
import type { ReplicaSet } from "../../../../src/kube/workloads.ts";
import { amounts } from "../../../support/fixtures/pod.ts";

const ONE = sizeOfCores(1);
const FOUR = sizeOfCores(4);
const TARGET = resourcesFor(FOUR, false);

interface Changes {
  readonly pods?: number;
  readonly createdAt?: string;
  readonly image?: string;
  readonly cores?: number;
  readonly other?: object;
}

function templateOf({ image = "pipe:1", cores = 1, other }: Changes, labels = {}): PodTemplate {
  const container = { name: "pipe", image, resources: amounts(sizeOfCores(cores)) };
  const others = other ? [{ name: "other", image: "other:1", resources: other }] : [];
  return {
    metadata: { labels: { app: "a", ...labels } },
    spec: { containers: [container, ...others] },
  };
}

/** In use, with one core. */
function replicaSet(name: string, changes: Changes = {}): ReplicaSet {
  const { pods = 2, createdAt = "2026-01-01T00:00:20Z" } = changes;
  const own = { name, namespace: "pipes", uid: `uid-${name}`, resourceVersion: "1", generation: 1 };
  return {
    metadata: { ...own, creationTimestamp: createdAt },
    spec: { replicas: pods, template: templateOf(changes, { "pod-template-hash": name }) },
    status: { replicas: pods },
  };
}

const OLDER = { pods: 0, createdAt: "2026-01-01T00:00:10Z", cores: 4 };

/** Kubernetes has scaled it to zero, and its pods still run. */
const STOPPING: ReplicaSet = { ...replicaSet("stopping", { pods: 0 }), status: { replicas: 1 } };

function facts(replicaSets: readonly ReplicaSet[], changes: Changes = {}): CommitFacts {
  return { container: "pipe", template: templateOf(changes), replicaSets };
}

const BYTES = `${16 * 2 ** 30}`;

/** Fields of a template, each with an amount in two notations. */
const NOTATIONS: readonly (readonly [string, PodSpecOf, string, string])[] = [
  [
    "the memory of a sidecar",
    (memory) => ({ containers: [sidecar({ requests: { memory } })] }),
    "16Gi",
    BYTES,
  ],
  ["a CPU limit", (cpu) => ({ containers: [sidecar({ limits: { cpu } })] }), "1e3", "1k"],
  ["a device", (each) => ({ initContainers: [sidecar({ limits: { "example.com/a": each } })] }), "2e3", "2k"],
  ["a size of the whole pod", (memory) => ({ resources: { requests: { memory } } }), "16Gi", BYTES],
  ["the overhead", (memory) => ({ overhead: { memory } }), "1Gi", "1073741824"],
  ["an empty directory", (sizeLimit) => volume({ emptyDir: { medium: "Memory", sizeLimit } }), "16Gi", BYTES],
  [
    "an ephemeral volume",
    (storage) =>
      volume({ ephemeral: { volumeClaimTemplate: { spec: { resources: { requests: { storage } } } } } }),
    "16Gi",
    BYTES,
  ],
];

type PodSpecOf = (amount: string) => object;

function sidecar(resources: object): object {
  return { name: "sidecar", image: "sidecar:1", resources };
}

function volume(source: object): object {
  return { volumes: [{ name: "data", ...source }] };
}

/** A template with more fields than those of the pipe. */
function withFields<T extends PodTemplate>({ spec, ...rest }: T, fields: object) {
  const { containers = [], ...others }: { readonly containers?: readonly Container[] } = fields;
  return { ...rest, spec: { ...spec, ...others, containers: [...spec.containers, ...containers] } };
}

function setWithFields({ spec, ...rest }: ReplicaSet, fields: object): ReplicaSet {
  return { ...rest, spec: { ...spec, template: withFields(spec.template, fields) } };
}

describe("the first write of a commit", () => {
  it("pauses the Deployment if all pods are of one ReplicaSet that equals the template", () => {
    expect(firstStep(facts([replicaSet("current")]), TARGET)).toBe("pause");
  });

  it.each<[string, CommitFacts]>([
    ["there is no ReplicaSet with pods", facts([replicaSet("current", { pods: 0 })])],
    ["two ReplicaSets have pods", facts([replicaSet("current"), replicaSet("old")])],
    ["the pods of another ReplicaSet still run", facts([replicaSet("current"), STOPPING])],
    ["the template is another one", facts([replicaSet("current")], { image: "pipe:2" })],
    ["the template has another size", facts([replicaSet("current")], { cores: 4 })],
    [
      "another container has other resources",
      facts([replicaSet("current", { other: {} })], { other: amounts(ONE) }),
    ],
    ["there is another container", facts([replicaSet("current", { other: {} })])],
  ])("waits if %s", (_, each) => {
    expect(firstStep(each, TARGET)).toBe("wait");
  });

  it("deletes an older, empty ReplicaSet with the same template and the size first", () => {
    const older = replicaSet("older", OLDER);
    expect(firstStep(facts([replicaSet("current"), older]), TARGET)).toBe(older);
  });

  it.each(NOTATIONS)(
    "does not wait for a rollout that another notation of %s does not cause",
    (_, fields, a, b) => {
      const inForm = (amount: string): CommitFacts => ({
        ...facts([setWithFields(replicaSet("current"), fields(a))]),
        template: withFields(templateOf({}), fields(amount)),
      });
      expect(firstStep(inForm(b), TARGET)).toBe("pause");
      expect(firstStep(inForm("3"), TARGET)).toBe("wait");
    },
  );

  it("does not wait if the owner wrote the present size in another notation", () => {
    const template = templateOf({});
    const [container] = template.spec.containers;
    const memory = `${4 * 2 ** 30}`;
    const resources = { requests: { cpu: "1e0", memory }, limits: { memory } };
    const inBytes = { ...template, spec: { containers: [{ name: "pipe", ...container, resources }] } };
    expect(firstStep({ ...facts([replicaSet("current")]), template: inBytes }, TARGET)).toBe("pause");
  });

  it.each(NOTATIONS)(
    "deletes an older ReplicaSet with another notation of %s, which Kubernetes would use",
    (_, fields, a, b) => {
      const older = setWithFields(replicaSet("older", OLDER), fields(a));
      const template = withFields(templateOf({}), fields(b));
      const current = setWithFields(replicaSet("current"), fields(b));
      expect(firstStep({ ...facts([current, older]), template }, TARGET)).toBe(older);
    },
  );

  it("waits for a rollout that texts cause which only look like two notations of an amount", () => {
    const template = templateOf({});
    const labeled = (text: string) => {
      const texts = { limits: text, requests: text, sizeLimit: text };
      return {
        ...template,
        metadata: { ...template.metadata, annotations: texts },
        spec: { ...template.spec, nodeSelector: texts },
      };
    };
    const current = replicaSet("current");
    const own = { ...current, spec: { ...current.spec, template: labeled("1Gi") } };
    expect(firstStep({ ...facts([own]), template: labeled("1Gi") }, TARGET)).toBe("pause");
    expect(firstStep({ ...facts([own]), template: labeled("1073741824") }, TARGET)).toBe("wait");
  });

  it.each<[string, Changes]>([
    ["newer", { createdAt: "2026-01-01T00:00:21Z" }],
    ["of another template", { image: "pipe:2" }],
    ["of another size", { cores: 2 }],
  ])("keeps an empty ReplicaSet that is %s", (_, changes) => {
    const other = replicaSet("other", { ...OLDER, ...changes });
    expect(firstStep(facts([replicaSet("current"), other]), TARGET)).toBe("pause");
  });
});

describe("the next write of a commit, when the paused template has the size", () => {
  const current = replicaSet("current");
  const paused = (replicaSets: readonly ReplicaSet[], changes = {}) =>
    facts(replicaSets, { cores: 4, ...changes });
  const updates: unknown[] = [];
  const pausedStep = (about: CommitFacts, resources: Resources | undefined, isOverdue: boolean) =>
    stepOf(about, resources, isOverdue, async (...update) => void updates.push(update));

  it("gives the ReplicaSet the size of the template, whatever size is desired now", async () => {
    const step = pausedStep(paused([current]), TARGET, false);
    expect(step).toEqual({ type: "relabel", write: expect.any(Function) });
    expect(updates).toEqual([]);
    if (step.type === "relabel") await step.write();
    expect(updates).toEqual([[current, TARGET]]);
  });

  it.each(NOTATIONS)(
    "gives it also if its owner wrote %s in another notation meanwhile",
    (_, fields, a, b) => {
      const own = setWithFields(current, fields(a));
      const inForm = (amount: string) => ({
        ...paused([own]),
        template: withFields(templateOf({ cores: 4 }), fields(amount)),
      });
      expect(pausedStep(inForm(b), TARGET, false)).toMatchObject({ type: "relabel" });
      expect(pausedStep(inForm("3"), TARGET, false)).toMatchObject({ fallback: { reason: "NotSettled" } });
    },
  );

  it("waits for the Deployment controller when the ReplicaSet has the size, and resumes if it does not respond", () => {
    const updated = paused([replicaSet("current", { cores: 4 })]);
    expect(pausedStep(updated, TARGET, false)).toEqual({ type: "wait" });
    expect(pausedStep(updated, TARGET, true)).toEqual({ type: "release" });
  });

  it("gives the template its old size again if the time is over, so that no pod is replaced", () => {
    expect(pausedStep(paused([current]), TARGET, true)).toEqual({
      type: "take-back",
      resources: resourcesFor(ONE, false),
      old: ONE,
    });
  });

  it.each<[string, CommitFacts, boolean]>([
    ["its owner scaled it to zero", paused([]), true],
    ["its owner removed the size from the template", paused([current]), false],
  ])("resumes if %s", (_, each, hasSize) => {
    expect(pausedStep(each, hasSize ? TARGET : undefined, false)).toEqual({ type: "release" });
  });

  it.each<[string, CommitFacts, string]>([
    [
      "its owner changed the template",
      paused([current], { image: "pipe:2" }),
      "its owner changed the pod template meanwhile",
    ],
    [
      "a second ReplicaSet has pods",
      paused([current, replicaSet("second")]),
      "its pods are of several ReplicaSets",
    ],
  ])("resumes, and a rollout brings the size, if %s", (_, each, message) => {
    for (const isOverdue of [false, true])
      expect(pausedStep(each, TARGET, isOverdue)).toEqual({
        type: "release",
        fallback: { reason: "NotSettled", message },
      });
  });
});
