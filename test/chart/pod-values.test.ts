import { tryHelm } from "@pipe-scaling/local-cluster/helm";
import { describe, expect, it } from "vitest";
import { type Manifest, RELEASE, rendered, valuesFile } from "./tools.ts";

const MINIMAL = ["--values", valuesFile("minimal")] as const;

/** Returns the only object of a kind whose name ends with the name of the process. */
async function objectOf(kind: string, component: string, ...args: readonly string[]): Promise<Manifest> {
  const objects = await rendered(...MINIMAL, ...args);
  const found = objects.find((each) => each.kind === kind && each.metadata.name.endsWith(`-${component}`));
  if (!found) throw new Error(`there is no ${kind} of the ${component}`);
  return found;
}

function json(path: string, value: unknown): readonly string[] {
  return ["--set-json", `${path}=${JSON.stringify(value)}`];
}

describe.each(["api", "controller"] as const)("the pod of the %s", (component) => {
  it("has its process as the first container, and the extra containers after it", async () => {
    const proxy = { name: "proxy", image: "r.example.com/proxy:1" };
    const deployment = await objectOf(
      "Deployment",
      component,
      ...json(`${component}.extraContainers`, [proxy]),
    );
    expect(deployment).toMatchObject({
      spec: {
        template: {
          metadata: { annotations: { "kubectl.kubernetes.io/default-container": component } },
          spec: { containers: [{ name: component }, proxy] },
        },
      },
    });
  });

  it("gets the memory allocator's settings of its extra variables instead of those of the chart", async () => {
    const own = { name: "MALLOC_ARENA_MAX", value: "4" };
    const deployment = await objectOf("Deployment", component, ...json(`${component}.extraEnv`, [own]));
    const text = JSON.stringify(deployment);
    expect(text.match(/"MALLOC_ARENA_MAX"/g)).toHaveLength(1);
    expect(text).toContain(JSON.stringify(own));
    expect(text).toContain('"MALLOC_TRIM_THRESHOLD_"');
  });

  it("gets the DNS settings and the entries of its hosts file", async () => {
    const spec = {
      dnsPolicy: "None",
      dnsConfig: { nameservers: ["192.0.2.53"] },
      hostAliases: [{ ip: "192.0.2.20", hostnames: ["proxy.example.com"] }],
    };
    const sets = Object.entries(spec).flatMap(([key, value]) => json(`${component}.${key}`, value));
    expect(await objectOf("Deployment", component, ...sets)).toMatchObject({ spec: { template: { spec } } });
    const standard = JSON.stringify(await objectOf("Deployment", component));
    for (const key of Object.keys(spec)) expect(standard).not.toContain(`"${key}"`);
  });

  it("has probes with the periods, timeouts and thresholds of the values", async () => {
    const probes = {
      livenessProbe: { periodSeconds: 20, timeoutSeconds: 10, failureThreshold: 6 },
      readinessProbe: { periodSeconds: 7, timeoutSeconds: 6, failureThreshold: 2 },
    };
    const containers = (of: typeof probes) => ({
      spec: {
        template: {
          spec: {
            containers: [
              {
                livenessProbe: { httpGet: { path: "/healthz", port: "ops" }, ...of.livenessProbe },
                readinessProbe: { httpGet: { path: "/readyz", port: "ops" }, ...of.readinessProbe },
              },
            ],
          },
        },
      },
    });
    const sets = Object.entries(probes).flatMap(([key, value]) => json(`${component}.${key}`, value));
    expect(await objectOf("Deployment", component, ...sets)).toMatchObject(containers(probes));
    expect(await objectOf("Deployment", component)).toMatchObject(
      containers({
        livenessProbe: { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
        readinessProbe: { periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 3 },
      }),
    );
  });

  it.each([
    ["by default one at a time", {}, { maxUnavailable: 1 }],
    ["as long as a number of pods remains", { minAvailable: 1 }, { minAvailable: 1 }],
    ["as long as a percentage of the pods remains", { minAvailable: "50%" }, { minAvailable: "50%" }],
    ["up to a number of pods", { maxUnavailable: 2 }, { maxUnavailable: 2 }],
  ])("may be evicted %s", async (_, values, allowed) => {
    const budget = await objectOf(
      "PodDisruptionBudget",
      component,
      ...Object.entries(values).flatMap(([key, value]) =>
        json(`${component}.podDisruptionBudget.${key}`, value),
      ),
    );
    const standard = { unhealthyPodEvictionPolicy: "AlwaysAllow", selector: expect.anything() };
    expect(budget).toMatchObject({ spec: { ...allowed } });
    expect(budget).toHaveProperty("spec", { ...standard, ...allowed });
  });

  it.each([
    ["minAvailable=1,maxUnavailable=1", /podDisruptionBudget: minAvailable and maxUnavailable are mutually/],
    ["minAvailable=2", /minAvailable \(2\) allows no eviction of the 2 pods/],
    ["minAvailable=100%", /minAvailable \(100%\) allows no eviction of the 2 pods/],
    ["minAvailable=51%", /minAvailable \(51%\) allows no eviction of the 2 pods/],
    ["maxUnavailable=0", /maxUnavailable \(0\) allows no eviction/],
    ["maxUnavailable=0%", /maxUnavailable \(0%\) allows no eviction/],
  ])(
    "is rejected with a budget that contradicts itself or blocks every drain: %s",
    async (budget, reason) => {
      const sets = budget.split(",").map((each) => `${component}.podDisruptionBudget.${each}`);
      const { code, stderr } = await tryHelm(["template", ...RELEASE, ...MINIMAL, "--set", sets.join()]);
      expect(stderr).toMatch(reason);
      expect(stderr).toContain(`${component}.podDisruptionBudget`);
      expect(code).toBe(1);
    },
  );

  it("is rejected with a budget of a percentage that Kubernetes rounds up to all of its pods", async () => {
    const stderr = async (replicas: number, percentage: string) => {
      const budget = `${component}.podDisruptionBudget.minAvailable=${percentage}`;
      const set = `${component}.replicaCount=${replicas},${budget}`;
      return (await tryHelm(["template", ...RELEASE, ...MINIMAL, "--set", set])).stderr;
    };
    expect(await stderr(3, "66%")).toBe("");
    expect(await stderr(3, "67%")).toContain("minAvailable (67%) allows no eviction of the 3 pods");
    expect(await stderr(1, "0%")).toBe("");
    expect(await stderr(1, "1%")).toContain("minAvailable (1%) allows no eviction");
  });

  it("may be stopped whatever its budget", async () => {
    const stopped = `${component}.replicaCount=0,${component}.podDisruptionBudget.minAvailable=1`;
    expect(await objectOf("Deployment", component, "--set", stopped)).toMatchObject({
      spec: { replicas: 0 },
    });
  });

  it.each([
    [
      "an extra container with the name of the process",
      json(`${component}.extraContainers`, [{ name: component }]),
      `${component}.extraContainers has a container named ${component}`,
    ],
    [
      "no DNS policy and no name servers",
      ["--set", `${component}.dnsPolicy=None`],
      `${component}.dnsPolicy is None, but ${component}.dnsConfig has no nameservers`,
    ],
  ])("is rejected with %s", async (_, args, reason) => {
    const { stderr } = await tryHelm(["template", ...RELEASE, ...MINIMAL, ...args]);
    expect(stderr).toContain(reason);
  });
});

it("a minimum of available pods of the API is compared with the minimum of its autoscaler", async () => {
  const values =
    "api.autoscaling.enabled=true,api.autoscaling.minReplicas=3,api.podDisruptionBudget.minAvailable";
  const stderr = async (least: number) =>
    (await tryHelm(["template", ...RELEASE, ...MINIMAL, "--set", `${values}=${least}`])).stderr;
  expect(await stderr(2)).toBe("");
  expect(await stderr(3)).toContain("minAvailable (3) allows no eviction of the 3 pods");
});
