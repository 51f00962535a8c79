import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/cli/doctor/cluster.ts";
import { checkInjected } from "../../../../src/cli/doctor/injected.ts";
import { checkLabels } from "../../../../src/cli/doctor/labels.ts";
import { checkLiteralSizes } from "../../../../src/cli/doctor/literal-sizes.ts";
import { checkPodSizes } from "../../../../src/cli/doctor/pod-sizes.ts";
import type { Result } from "../../../../src/cli/doctor/result.ts";
import { checkWorkloads } from "../../../../src/cli/doctor/workloads.ts";
import {
  CONTAINER_ANNOTATION,
  LAST_ROLLOUT_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../../../src/controller/names.ts";
import { pipeDeployment, pipeStatefulSet } from "../../../support/fixtures/pipe.ts";
import { clusterWith } from "./fake-reads.ts";

const LABELS = { [SERVICE_LABEL]: "service", [TYPE_LABEL]: "database" };

interface Options {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly container?: object;
  readonly podAnnotations?: Readonly<Record<string, string>>;
  readonly podResources?: object;
  readonly podContainers?: readonly string[];
  readonly podMetadata?: object;
  readonly ready?: string;
  readonly observed?: number;
  readonly strategy?: string;
  readonly suspend?: boolean;
  readonly availableReplicas?: number;
  readonly updatedReplicas?: number;
  /** Deployments that are no pipes. */
  readonly deployments?: readonly object[];
  readonly lists?: Readonly<Record<string, readonly object[]>>;
  /** Single objects, by path. */
  readonly objects?: Readonly<Record<string, object>>;
}

const ONE = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };

/** A pipe with a pod. */
async function results(check: (cluster: Cluster) => Promise<Result[]>, options: Options) {
  const { labels = LABELS, container = {}, podAnnotations = {}, podResources = ONE, lists = {} } = options;
  const { podContainers = [], ready = "True", observed = 1, strategy = "InPlaceOrRollout" } = options;
  const pipe = pipeDeployment({
    name: "a",
    namespace: "pipes",
    serviceId: "service",
    cores: 1,
    podAnnotations,
  });
  const [first] = pipe.spec.template.spec.containers;
  const { availableReplicas = 1, updatedReplicas = 1 } = options;
  const counts = { replicas: 1, updatedReplicas, availableReplicas };
  const deployment = {
    ...pipe,
    metadata: { ...pipe.metadata, labels, annotations: options.annotations, generation: 1 },
    spec: {
      ...pipe.spec,
      template: { ...pipe.spec.template, spec: { containers: [{ ...first, ...container }] } },
    },
    status: { ...counts, observedGeneration: 1 },
  };
  const pod = {
    metadata: {
      name: "a-hash-1",
      namespace: "pipes",
      labels: { "pod-template-hash": "hash" },
      ownerReferences: [{ kind: "ReplicaSet", name: "a-hash", uid: "r" }],
      ...options.podMetadata,
    },
    spec: {
      containers: [{ name: "pipe", resources: podResources }, ...podContainers.map((name) => ({ name }))],
    },
    status: { phase: "Running" },
  };
  const scaling = {
    metadata: { name: "service", namespace: "pipes", generation: 1 },
    spec: { strategy, suspend: options.suspend },
    status: { observedGeneration: observed, conditions: [{ type: "Ready", status: ready }] },
  };
  const listOf = (items: readonly object[]) => ({ metadata: {}, items });
  const others = Object.entries(lists).map(([path, items]) => [path, listOf(items)]);
  const all = await check(
    clusterWith({
      "/apis/apps/v1/deployments": listOf([deployment, ...(options.deployments ?? [])]),
      "/api/v1/pods": listOf([pod]),
      "/apis/pipes.clouddb.dev/v1beta1/pipescalings": listOf([scaling]),
      ...Object.fromEntries(others),
      ...options.objects,
    }),
  );
  for (const { severity, remedy } of all) if (severity !== "ok") expect(remedy).toMatch(/\S/);
  return all.map(({ severity, message }) => `${severity}: ${message}`);
}

describe("the label check of doctor", () => {
  it("accepts a pipe, and a Deployment without our labels", async () => {
    expect(await results(checkLabels, {})).toEqual([]);
    expect(await results(checkLabels, { labels: { app: "a" } })).toEqual([]);
    const other = { [SERVICE_LABEL]: "s", [TYPE_LABEL]: "kafka" };
    expect(await results(checkLabels, { labels: other })).toEqual([]);
  });

  it.each([
    [
      { [SERVICE_LABEL]: "s", [TYPE_LABEL]: "databse" },
      `has the label ${TYPE_LABEL}=databse instead of database`,
    ],
    ...["Database", "databases", "data-base", "db-database", "datbas"].map(
      (type): [Record<string, string>, string] => [
        { [SERVICE_LABEL]: "s", [TYPE_LABEL]: type },
        `has the label ${TYPE_LABEL}=${type} instead of database`,
      ],
    ),
    [{ [SERVICE_LABEL]: "s" }, `has the label ${SERVICE_LABEL}, but not ${TYPE_LABEL}=database`],
    [{ [TYPE_LABEL]: "database" }, `has the label ${TYPE_LABEL}=database, but not ${SERVICE_LABEL}`],
    [
      { [SERVICE_LABEL]: "s", "pipes.clouddb.dev/typ": "database" },
      "has pipes.clouddb.dev/typ=database, which is not a label of pipes",
    ],
  ])("reports a Deployment with the labels %o", async (labels, problem) => {
    expect(await results(checkLabels, { labels })).toEqual([
      `warning: The Deployment pipes/a ${problem}, so it is not a pipe and is not resized.`,
    ]);
  });

  it("reports a StatefulSet with a wrong label, and the remedy is about that kind", async () => {
    const metadata = { name: "loader", namespace: "pipes", labels: { ...LABELS, [TYPE_LABEL]: "databse" } };
    const lists = { "/apis/apps/v1/statefulsets": [{ metadata, spec: { template: {} } }] };
    const remedies: string[] = [];
    const check = async (cluster: Cluster) => {
      const all = await checkLabels(cluster);
      remedies.push(...all.map(({ remedy = "" }) => remedy));
      return all;
    };
    expect(await results(check, { lists })).toEqual([
      `warning: The StatefulSet pipes/loader has the label ${TYPE_LABEL}=databse instead of database, so it is not a pipe and is not resized.`,
    ]);
    expect(remedies).toEqual([expect.stringContaining("kubectl label statefulset loader ")]);
  });

  it.each(["Deployment", "StatefulSet"])(
    "reports a %s with the labels of a pipe only in its pod template, unless it is of another type",
    async (kind) => {
      const check = (
        podLabels: Readonly<Record<string, string>>,
        labels: Readonly<Record<string, string>> = {},
      ) => {
        const metadata = { name: "loader", namespace: "pipes", labels: { app: "loader", ...labels } };
        const spec = { template: { metadata: { labels: podLabels }, spec: { containers: [] } } };
        const path = `/apis/apps/v1/${kind.toLowerCase()}s`;
        return results(checkLabels, { lists: { [path]: [{ metadata, spec }] } });
      };
      expect(await check(LABELS)).toEqual([
        `warning: The ${kind} pipes/loader has the labels of a pipe only in its pod template, so it is not a pipe and is not resized.`,
      ]);
      expect(await check(LABELS, LABELS)).toEqual([]);
      expect(await check(LABELS, { ...LABELS, [TYPE_LABEL]: "kafka" })).toEqual([]);
      expect(await check({ ...LABELS, [TYPE_LABEL]: "kafka" })).toEqual([]);
      expect(await check({ [SERVICE_LABEL]: "service" })).toEqual([]);
      expect(await check({ app: "loader" })).toEqual([]);
    },
  );

  it("reports an annotation of another spelling, and accepts those that exist", async () => {
    const known = { [CONTAINER_ANNOTATION]: "pipe", [LAST_ROLLOUT_ANNOTATION]: "{}", "example.com/a": "b" };
    expect(await results(checkLabels, { annotations: known })).toEqual([]);
    const annotations = { ...known, "pipes.clouddb.dev/containers": "pipe" };
    expect(await results(checkLabels, { annotations })).toEqual([
      "warning: The pipe pipes/a has the annotation pipes.clouddb.dev/containers, which has no effect.",
    ]);
  });
});

describe("the label check of doctor with several releases", () => {
  /** The pipe is in the namespace `pipes`. */
  function check(...controllers: readonly { readonly records: string; readonly pipes: string }[]) {
    const items = controllers.map(({ records, pipes }) => controllerDeployment(records, pipes));
    const pipe = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service", cores: 1 });
    return checkLabels(
      clusterWith({ "/apis/apps/v1/deployments": { metadata: {}, items: [pipe, ...items] } }),
    );
  }
  const OURS = { records: "records", pipes: "ours,more" };

  it("accepts a pipe that the controller of another release watches", async () => {
    expect(await check(OURS, { records: "others", pipes: "more,pipes" })).toEqual([]);
    expect(await check(OURS, { records: "others", pipes: "" })).toEqual([]);
  });

  it("reports a pipe that no controller watches, unless the own controller is not found", async () => {
    const other = { records: "others", pipes: "theirs" };
    expect(await check(OURS, other)).toEqual([
      {
        severity: "warning",
        message: "The pipe pipes/a is in a namespace that no controller watches, so it is not resized.",
        remedy: "helm upgrade with pipes in pipes.namespaces, or move the pipe to one of: ours, more.",
      },
    ]);
    expect(await check(other)).toEqual([]);
  });
});

function controllerDeployment(records: string, pipes: string, toleratedResizers = "") {
  const labels = {
    "app.kubernetes.io/component": "controller",
    "app.kubernetes.io/part-of": "pipe-scaling-operator",
  };
  const env = [
    { name: "PIPE_SCALING_NAMESPACE", value: records },
    { name: "PIPE_SCALING_PIPE_NAMESPACES", value: pipes },
    { name: "PIPE_SCALING_TOLERATED_RESIZERS", value: toleratedResizers },
  ];
  return {
    metadata: { name: "controller", namespace: `release-of-${records}`, labels },
    spec: { template: { metadata: { labels }, spec: { containers: [{ name: "controller", env }] } } },
  };
}

describe("the workload check of doctor", () => {
  const metadata = { name: "w", namespace: "pipes", labels: LABELS };
  it.each([
    ["DaemonSet", "/apis/apps/v1/daemonsets"],
    ["ReplicaSet", "/apis/apps/v1/replicasets"],
    ["Job", "/apis/batch/v1/jobs"],
    ["CronJob", "/apis/batch/v1/cronjobs"],
  ])("reports a %s with the labels of a pipe, unless it has an owner", async (kind, path) => {
    const lists = { [path]: [{ metadata }], "/api/v1/pods": [] };
    expect(await results(checkWorkloads, { lists })).toEqual([
      `warning: The ${kind} pipes/w has the labels of a pipe, but only Deployments and StatefulSets are resized.`,
    ]);
    const owned = {
      metadata: { ...metadata, ownerReferences: [{ kind: "Deployment", name: "a", uid: "u" }] },
    };
    expect(await results(checkWorkloads, { lists: { ...lists, [path]: [owned] } })).toEqual([]);
  });

  describe("for labels only in a pod template", () => {
    const DAEMON_SETS = "/apis/apps/v1/daemonsets";
    const REPLICA_SETS = "/apis/apps/v1/replicasets";
    const JOBS = "/apis/batch/v1/jobs";
    const CRON_JOBS = "/apis/batch/v1/cronjobs";
    const own = (kind: string, uid: string) => ({ kind, name: `of-${uid}`, uid });
    const labeled = (uid: string, owner?: object) => ({
      metadata: { ...metadata, name: `of-${uid}`, uid, ...(owner && { ownerReferences: [owner] }) },
    });
    const podsOf = (...owners: readonly object[]) => ({
      "/api/v1/pods": owners.map((owner, at) => labeled(`pod-${at}`, owner)),
    });
    const warningOf = (kind: string, uid: string) =>
      `warning: Pods of the ${kind} pipes/of-${uid} have the labels of a pipe, but only Deployments and StatefulSets are resized.`;

    it.each(["DaemonSet", "Job", "ReplicationController", "CloneSet"])("reports a %s once", async (kind) => {
      const lists = podsOf(own(kind, "u"), own(kind, "u"));
      expect(await results(checkWorkloads, { lists })).toEqual([warningOf(kind, "u")]);
    });

    it("reports the CronJob instead of its Jobs, whatever labels they have", async () => {
      const jobs = [own("Job", "j1"), own("Job", "j2")];
      const inList = { [JOBS]: [labeled("j1", own("CronJob", "c")), labeled("j2", own("CronJob", "c"))] };
      const lists = podsOf(...jobs);
      expect(await results(checkWorkloads, { lists: { ...lists, ...inList } })).toEqual([
        warningOf("CronJob", "c"),
      ]);
      const objects = Object.fromEntries(
        jobs.map(({ uid }) => [
          `/apis/batch/v1/namespaces/pipes/jobs/of-${uid}`,
          labeled(uid, own("CronJob", "c")),
        ]),
      );
      expect(await results(checkWorkloads, { lists, objects })).toEqual([warningOf("CronJob", "c")]);
    });

    it("reports a Job of a circle of owners, which users can make", async () => {
      const jobs = [labeled("j", own("Job", "k")), labeled("k", own("Job", "j"))];
      const lists = { ...podsOf(own("Job", "j")), [JOBS]: jobs };
      expect(await results(checkWorkloads, { lists })).toEqual([warningOf("Job", "k")]);
    });

    it.each([
      [
        "a Deployment",
        { ...podsOf(own("ReplicaSet", "r")), [REPLICA_SETS]: [labeled("r", own("Deployment", "d"))] },
      ],
      ["a StatefulSet", podsOf(own("StatefulSet", "s"))],
      ["a ReplicaSet that is created at the same time", podsOf(own("ReplicaSet", "r"))],
      [
        "a Rollout, which has a check of its own",
        { ...podsOf(own("ReplicaSet", "r")), [REPLICA_SETS]: [labeled("r", own("Rollout", "o"))] },
      ],
    ])("does not report %s", async (_, lists) => {
      expect(await results(checkWorkloads, { lists })).toEqual([]);
    });

    it.each([
      ["DaemonSet", { ...podsOf(own("DaemonSet", "u")), [DAEMON_SETS]: [labeled("u")] }],
      [
        "CronJob",
        {
          ...podsOf(own("Job", "j")),
          [JOBS]: [labeled("j", own("CronJob", "u"))],
          [CRON_JOBS]: [labeled("u")],
        },
      ],
    ])("reports a %s that has them itself only once", async (kind, lists) => {
      expect(await results(checkWorkloads, { lists })).toEqual([
        `warning: The ${kind} pipes/of-u has the labels of a pipe, but only Deployments and StatefulSets are resized.`,
      ]);
    });
  });
});

describe("the check for pod sizes of doctor", () => {
  const TWO = { ...ONE, requests: { cpu: "2", memory: "4Gi" } };
  const DIFFERS =
    "warning: The pod pipes/a-hash-1 has a cpu request of 2 instead of 1: it differs from the pod template of the pipe pipes/a, although no rescale is in progress.";
  const RESIZED_BY_OTHER = [
    {
      manager: "right-sizer",
      operation: "Update",
      subresource: "resize",
      time: "2026-01-01T00:00:00Z",
      fieldsV1: {
        "f:spec": { "f:containers": { 'k:{"name":"pipe"}': { "f:resources": { "f:requests": {} } } } },
      },
    },
  ];

  it("accepts a pod with the size of its template, however it is written", async () => {
    const podResources = {
      requests: { cpu: "1000m", memory: "4096Mi" },
      limits: { memory: "4Gi", cpu: "8" },
    };
    expect(await results(checkPodSizes, { podResources })).toEqual([]);
  });

  it("reports a pod of a StatefulSet, except below the partition of its owner", async () => {
    const made = pipeStatefulSet({ name: "loader", namespace: "pipes", serviceId: "service", cores: 2 });
    const withPartition = (partition: number) => {
      const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition } };
      const metadata = { ...made.metadata, generation: 1 };
      const counts = { replicas: 2, updatedReplicas: 1, availableReplicas: 2, observedGeneration: 1 };
      const status = partition === 0 ? { ...counts, updatedReplicas: 2 } : counts;
      return { ...made, metadata, spec: { ...made.spec, replicas: 2, updateStrategy }, status };
    };
    const podMetadata = {
      name: "loader-0",
      ownerReferences: [{ kind: "StatefulSet", name: "loader", uid: "s" }],
    };
    const check = (partition: number) =>
      results(checkPodSizes, {
        podMetadata,
        lists: {
          "/apis/apps/v1/deployments": [],
          "/apis/apps/v1/statefulsets": [withPartition(partition)],
        },
      });
    expect(await check(0)).toEqual([
      expect.stringMatching(/^warning: The pod pipes\/loader-0 has a cpu request of 1 instead of 2/),
    ]);
    expect(await check(1)).toEqual([]);
  });

  /** The remedies, each with the severity of its result. */
  async function remedies(options: Options) {
    const check = async (cluster: Cluster) => {
      const all = await checkPodSizes(cluster);
      return all.map((each) => ({ ...each, message: each.remedy ?? "" }));
    };
    return results(check, { podResources: TWO, ...options });
  }

  it("says how to resume a suspended service, and to replace the pods of others", async () => {
    expect(await remedies({ suspend: true })).toEqual([
      expect.stringMatching(
        /^warning: Resume the service, and the controller repairs the pods: kubectl patch pipescalings service /,
      ),
    ]);
    expect(await remedies({ suspend: false })).toEqual([
      expect.stringContaining("kubectl rollout restart deployment a "),
    ]);
  });

  it("says to wait for a tolerated writer, and that a suspended service is repaired only once it is resumed", async () => {
    const deployments = [controllerDeployment("records", "", "right-sizer")];
    const options = { podMetadata: { managedFields: RESIZED_BY_OTHER }, deployments };
    const wait =
      "warning: Wait until it returns the pod to its size. If it does not, remove it from controller.config.toleratedResizers, ";
    expect(await remedies({ ...options, suspend: false })).toEqual([
      `${wait}and the controller repairs the pod.`,
    ]);
    expect(await remedies({ ...options, suspend: true })).toEqual([
      `${wait}then resume the service, and the controller repairs the pods: kubectl patch pipescalings service --namespace pipes --type merge --patch '{"spec":{"suspend":false}}'`,
    ]);
  });

  it.each<[string, Options]>([
    ["is scaled", {}],
    ["is suspended", { ready: "Unknown" }],
  ])("reports a pod that differs while the service %s", async (_, options) => {
    expect(await results(checkPodSizes, { podResources: TWO, ...options })).toEqual([DIFFERS]);
  });

  it.each(["True", "False"])("names another writer that resized the pod while Ready is %s", async (ready) => {
    const options = { podResources: TWO, podMetadata: { managedFields: RESIZED_BY_OTHER }, ready };
    expect(await results(checkPodSizes, options)).toEqual([
      `warning: The pod pipes/a-hash-1 has a cpu request of 2 instead of 1: another writer, "right-sizer", resized it after its pipe pipes/a had its size.`,
    ]);
  });

  /** Another writer resized the only pod of a StatefulSet. */
  function statefulResults(
    {
      spec = {},
      status = {},
      revision = "newest",
    }: { readonly spec?: object; readonly status?: object; readonly revision?: string },
    managedFields: readonly object[] = RESIZED_BY_OTHER,
  ) {
    const made = pipeStatefulSet({ name: "loader", namespace: "pipes", serviceId: "service", cores: 1 });
    const counts = { replicas: 1, updatedReplicas: 1, availableReplicas: 1 };
    const loader = {
      ...made,
      metadata: { ...made.metadata, generation: 1 },
      spec: { ...made.spec, ...spec },
      status: {
        ...counts,
        observedGeneration: 1,
        currentRevision: "newest",
        updateRevision: "newest",
        ...status,
      },
    };
    const podMetadata = {
      name: "loader-0",
      labels: { "controller-revision-hash": revision },
      ownerReferences: [{ kind: "StatefulSet", name: "loader", uid: "s" }],
      managedFields,
    };
    const lists = { "/apis/apps/v1/deployments": [], "/apis/apps/v1/statefulsets": [loader] };
    return results(checkPodSizes, { podResources: TWO, podMetadata, lists, ready: "False" });
  }

  const ON_DELETE = { updateStrategy: { type: "OnDelete" } };
  const BELOW_PARTITION = { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } };

  it.each([
    ["is not ready", { status: { availableReplicas: 0 } }],
    ["is replaced only by its owner", { spec: ON_DELETE }],
    ["is below the partition of its owner", { spec: BELOW_PARTITION }],
    [
      "is below a partition that does not hold all pods",
      { spec: { ...BELOW_PARTITION, replicas: 2 }, status: { replicas: 2, updatedReplicas: 2 } },
    ],
    [
      "waits for a pod that is missing",
      { spec: { replicas: 2 }, status: { availableReplicas: 0, updatedReplicas: 1 } },
    ],
  ])("names another writer that resized a pod of a StatefulSet which %s", async (_, pipe) => {
    expect(await statefulResults(pipe)).toEqual([
      `warning: The pod pipes/loader-0 has a cpu request of 2 instead of 1: another writer, "right-sizer", resized it after its pipe pipes/loader had its size.`,
    ]);
    expect(await statefulResults(pipe, [])).toEqual([]);
  });

  it.each([
    ["the pod has an earlier template", { revision: "earlier", spec: ON_DELETE }],
    [
      "Kubernetes has not seen the newest template",
      { spec: BELOW_PARTITION, status: { observedGeneration: 0 } },
    ],
  ])("names no writer that resized a pod of a StatefulSet while %s", async (_, pipe) => {
    expect(await statefulResults(pipe)).toEqual([]);
  });

  it("names another writer that resized a pod of a Deployment which is not ready, but not during a rollout", async () => {
    const options = { podResources: TWO, podMetadata: { managedFields: RESIZED_BY_OTHER } };
    const unready = { ...options, availableReplicas: 0 };
    expect(await results(checkPodSizes, unready)).toEqual([
      expect.stringContaining('another writer, "right-sizer"'),
    ]);
    expect(await results(checkPodSizes, { ...unready, updatedReplicas: 0 })).toEqual([]);
  });

  it.each<[string, Options]>([
    ["a rescale is in progress", { ready: "False" }],
    ["the controller has not observed the newest change", { observed: 0 }],
    ["a rollout is in progress", { availableReplicas: 0 }],
    ["the pod is being deleted", { podMetadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }],
    ["the pod is of another Deployment", { podMetadata: { ownerReferences: [] } }],
  ])("does not report a pod while %s", async (_, options) => {
    expect(await results(checkPodSizes, { podResources: TWO, ...options })).toEqual([]);
  });
});

describe("the check for injected containers of doctor", () => {
  const podContainers = ["proxy"];

  it("reports a container that is not in the template", async () => {
    expect(await results(checkInjected, { podContainers })).toEqual([
      `warning: Pods of the pipe pipes/a have containers that are not in its pod template (proxy), but no annotation ${CONTAINER_ANNOTATION}, so they cannot be resized in place.`,
    ]);
  });

  it.each<[string, Options]>([
    ["no container was injected", { podContainers: [] }],
    ["the template has the annotation", { podAnnotations: { [CONTAINER_ANNOTATION]: "pipe" } }],
    ["pipes are not resized in place", { strategy: "Rollout" }],
  ])("reports nothing if %s", async (_, options) => {
    expect(await results(checkInjected, { podContainers, ...options })).toEqual([]);
  });
});

describe("the check for fixed sizes of doctor", () => {
  const variable = (name: string, value: string) => ({ env: [{ name, value }] });

  it.each([
    [variable("JAVA_TOOL_OPTIONS", "-Dsecret=1 -Xmx3g -Xss1m"), "-Xmx3g in JAVA_TOOL_OPTIONS"],
    [variable("JAVA_OPTS", "-XX:MaxRAM=4g"), "-XX:MaxRAM=4g in JAVA_OPTS"],
    [variable("NODE_OPTIONS", "--max-old-space-size=3000"), "--max-old-space-size=3000 in NODE_OPTIONS"],
    [variable("GOMEMLIMIT", "3GiB"), "GOMEMLIMIT=3GiB"],
    [variable("GOMAXPROCS", "2"), "GOMAXPROCS=2"],
    [{ args: ["-XX:ActiveProcessorCount=2"] }, "-XX:ActiveProcessorCount=2"],
    [{ command: ["node", "--max_old_space_size=100"] }, "--max_old_space_size=100"],
    [{ args: ["-jar", "-Xmx512m"] }, "-Xmx512m"],
    [{ args: ["sh", "-c", "exec java -Xmx1G -jar app.jar"] }, "-Xmx1G"],
  ])("reports the container %o", async (container, found) => {
    expect(await results(checkLiteralSizes, { container })).toEqual([
      expect.stringContaining(`warning: The pipe pipes/a sets a fixed size, ${found}: the program`),
    ]);
  });

  it.each([
    {},
    variable("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75.0 -Xmx$(MEMORY)m"),
    variable("NODE_OPTIONS", "--max-old-space-size-percentage=75"),
    variable("GOMEMLIMIT", "off"),
    { env: [{ name: "GOMEMLIMIT", valueFrom: { resourceFieldRef: { resource: "limits.memory" } } }] },
  ])("accepts the container %o", async (container) => {
    expect(await results(checkLiteralSizes, { container })).toEqual([]);
  });
});
