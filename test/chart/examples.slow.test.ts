import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { apply, kubectl, untilEstablished } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import * as z from "zod";
import { CHART } from "../../deploy/chart/path.ts";
import { API_VERSION, GROUP, KIND } from "../../src/crd/names.ts";
import { stepsOf } from "../e2e/tutorial.ts";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { runCommands } from "../support/page-commands.ts";
import { Simulation } from "../support/simulation/simulation.ts";
import { BUILD_MS } from "./checkers/build.ts";
import { type GitOps, gitOps } from "./checkers/gitops.ts";
import type { Manifest } from "./tools.ts";

const MINUTE_MS = 60_000;
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The files that have objects; the health check of Argo CD is a patch. */
const EXAMPLES = ["argo-cd", "flux", "flux-sizes"] as const;
/** The setting of Argo CD for the health of PipeScalings. */
const HEALTH = `resource.customizations.health.${GROUP}_${KIND}`;

function example(name: (typeof EXAMPLES)[number] | "argo-cd-health"): string {
  return readFileSync(join(ROOT, "deploy", "examples", `${name}.yaml`), "utf8");
}

/** The blocks of commands of docs/gitops.md, in order. */
const COMMANDS = stepsOf(readFileSync(join(ROOT, "docs", "gitops.md"), "utf8")).map(
  ({ commands }) => commands,
);
/** Commands that remove the release. */
const REMOVAL = /^kubectl (wait|delete) /;

function objects(text: string): readonly Manifest[] {
  return parseAllDocuments(text).map((document): Manifest => document.toJS());
}

/** Returns the only object of this kind. */
function only<T>(kind: string, text: string, shape: z.ZodType<T>): T {
  return shape.parse(objects(text).find((each) => each.kind === kind));
}

const application = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    destination: z.object({ namespace: z.string() }),
    source: z.object({
      path: z.string(),
      targetRevision: z.string(),
      helm: z.object({ valuesObject: z.looseObject({}) }),
    }),
  }),
});
const gitRepository = z.object({ spec: z.object({ ref: z.object({ tag: z.string() }) }) });
const kustomization = z.object({
  spec: z.object({ path: z.string(), sourceRef: z.object({ name: z.string() }) }),
});
const helmRelease = z.object({
  spec: z.object({
    releaseName: z.string(),
    targetNamespace: z.string(),
    chart: z.object({ spec: z.object({ chart: z.string() }) }),
    values: z.looseObject({}),
  }),
});
const argoSettings = z.object({ data: z.record(z.string(), z.string()) });
const source = z.object({ metadata: z.object({ name: z.string() }) });

/** Returns the arguments of helm that are equivalent to an example. */
function installed(name: "argo-cd" | "flux") {
  const text = example(name);
  if (name === "argo-cd") {
    const { metadata, spec } = only("Application", text, application);
    const { path, targetRevision: tag, helm } = spec.source;
    return { tag, path, release: metadata.name, ...spec.destination, values: helm.valuesObject };
  }
  const { spec } = only("HelmRelease", text, helmRelease);
  const { tag } = only("GitRepository", text, gitRepository).spec.ref;
  const { releaseName: release, targetNamespace: namespace, values } = spec;
  return { tag, path: spec.chart.spec.chart, release, namespace, values };
}

let tools: GitOps;
beforeAll(async () => {
  tools = await gitOps();
}, BUILD_MS);

describe("the examples", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    // A separate cluster, because other tests must not see these CRDs.
    cluster = await startCluster({ controllerManager: false, nodes: 0 });
    await kubectl(cluster, ["apply", "--server-side", "-f", tools.definitions]);
    await untilEstablished(cluster);
    await apply(
      cluster,
      ["argocd", "flux-system"].map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
    );
    for (const name of EXAMPLES)
      await waitFor(() => take(example(name)), { what: `the CRDs of ${name} to be served` });
  });
  afterAll(() => cluster?.stop());

  /** Applies as a dry run. */
  function take(input: string): Promise<string> {
    const strictly = ["--server-side", "--dry-run=server", "--validate=strict", "--warnings-as-errors"];
    return kubectl(cluster, ["apply", ...strictly, "-f", "-"], { input });
  }

  it.each(EXAMPLES)("in %s.yaml are accepted by the CRDs of the tool", async (name) => {
    const output = await take(example(name));
    expect(output.trimEnd().split("\n")).toHaveLength(objects(example(name)).length);
  });

  it.each([
    ["argo-cd", "selfHeal: true", "selfHeals: true", /selfHeals/],
    ["flux", "reconcileStrategy: Revision", "reconcileStrategy: Always", /Unsupported value: "Always"/],
    ["flux", "url: https:", "url: ftp:", /spec\.url/],
    ["flux-sizes", "timeout: 30m", "timeout: long", /spec\.timeout/],
  ] as const)("for %s would not be taken with a mistake: %s as %s", async (name, right, wrong, reason) => {
    await expect(take(example(name).replace(right, wrong))).rejects.toThrow(reason);
  });

  it.each(["argo-cd", "flux"] as const)("for %s install the chart of this version", async (name) => {
    const { tag, path, release, namespace, values } = installed(name);
    const file = join(temporaryFolder(), "values.yaml");
    writeFileSync(file, stringify(values));
    const chart = join(ROOT, path);
    const manifests = await helm(["template", release, chart, "--namespace", namespace, "--values", file]);
    // The names in the rest of the documentation.
    expect(manifests).toContain('\n  name: pipe-scaling-operator-api\n  namespace: "pipe-scaling-system"\n');
    expect(tag).toBe(`v${parse(readFileSync(`${CHART}/Chart.yaml`, "utf8")).version}`);
  });

  it("for Flux read sizes from a repository of their own, from a path that exists in any repository", () => {
    const { path, sourceRef } = only("Kustomization", example("flux-sizes"), kustomization).spec;
    expect(path).toBe("./");
    expect(only("GitRepository", example("flux-sizes"), source).metadata.name).toBe(sourceRef.name);
    expect(only("GitRepository", example("flux"), source).metadata.name).not.toBe(sourceRef.name);
  });

  it("for Argo CD remove the objects of the release together with the Application", () => {
    const finalizers = z.object({ metadata: z.object({ finalizers: z.array(z.string()) }) });
    expect(only("Application", example("argo-cd"), finalizers).metadata.finalizers).toEqual([
      "resources-finalizer.argocd.argoproj.io/foreground",
    ]);
  });

  it("are applied and deleted by the commands of docs/gitops.md, which keep the settings of Argo CD", async () => {
    const settings = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "argocd-cm", namespace: "argocd" },
    };
    await apply(cluster, [{ ...settings, data: { url: "https://argocd.example.com" } }]);
    const removal = COMMANDS.filter((command) => REMOVAL.test(command));
    const installation = COMMANDS.filter((command) => !REMOVAL.test(command));
    expect([installation.length, removal.length]).toEqual([5, 3]);
    await runCommands(cluster, installation, { cwd: ROOT });
    // Nothing here removes the finalizer.
    const withoutArgo = removal.map((command) => command.replace("delete application", "$& --wait=false"));
    await runCommands(cluster, withoutArgo, { cwd: ROOT });
    const left = await kubectl(cluster, ["get", "helmreleases,gitrepositories", "-A", "-o", "name"]);
    expect(left.trim()).toBe("gitrepository.source.toolkit.fluxcd.io/pipe-sizes");
    const files = EXAMPLES.flatMap((name) => ["-f", join(ROOT, "deploy", "examples", `${name}.yaml`)]);
    await kubectl(cluster, ["delete", "--wait=false", "--ignore-not-found", ...files]);
    const kept = await kubectl(cluster, ["get", "configmap", "argocd-cm", "-n", "argocd", "-o", "json"]);
    expect(Object.keys(argoSettings.parse(JSON.parse(kept)).data).toSorted()).toEqual([HEALTH, "url"]);
  });

  it.each(["argo-cd", "flux"] as const)("for %s render objects that an API server accepts", async (name) => {
    const { path, release, namespace, values } = installed(name);
    const file = join(temporaryFolder(), "values.yaml");
    writeFileSync(file, stringify(values));
    const args = ["--namespace", namespace, "--values", file, "--skip-tests"];
    const rendered = await helm(["template", release, join(ROOT, path), ...args]);
    const names = z.object({ pipes: z.object({ namespaces: z.array(z.string()) }) }).parse(values).pipes;
    await apply(
      cluster,
      [namespace, "pipe-scaling-records", ...names.namespaces].map((each) => ({
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: each },
      })),
    );
    const certificate = /^kind: Certificate$/m;
    const parts = rendered.split(/^---$/m);
    expect(parts.filter((part) => certificate.test(part))).toHaveLength(1);
    // The cluster does not have the CRD of cert-manager.
    await take(parts.filter((part) => !certificate.test(part)).join("---\n"));
  });
});

describe("the health of a PipeScaling in Argo CD and Flux", () => {
  const PIPES = ["a", "b", "c"];

  function check(): string {
    return argoSettings.parse(parse(example("argo-cd-health"))).data[HEALTH] ?? "";
  }

  /** A controller with one service, after its last rollout. */
  async function settled(): Promise<Simulation> {
    const simulation = new Simulation();
    simulation.addService(1);
    for (const pipe of PIPES) simulation.deploy(pipe, 1);
    simulation.start();
    await simulation.run(MINUTE_MS);
    return simulation;
  }

  function judged(object: object) {
    return tools.judge({ apiVersion: API_VERSION, kind: KIND, ...object }, check());
  }

  /** Long enough for the controller to finish. */
  const aMinute = (simulation: Simulation) => simulation.run(MINUTE_MS);

  it.each<[string, string, string, RegExp, (simulation: Simulation) => void | Promise<void>]>([
    ["settled", "Healthy", "Current", /^All 3 pipes run 1 cpu/, aMinute],
    [
      "limited by its tier",
      "Healthy",
      "Current",
      /tier allows\.$/,
      (simulation) => {
        simulation.requestSize(1, 1000);
        return aMinute(simulation);
      },
    ],
    [
      "in progress",
      "Progressing",
      "InProgress",
      /^0 of 3 pipes run 2 cpu/,
      (simulation) => {
        simulation.requestSize(1, 2);
        return simulation.run(500);
      },
    ],
    [
      "failed",
      "Degraded",
      "Failed",
      /0 of 3 pipes run 2 cpu/,
      (simulation) => {
        simulation.cluster.rolloutMs = () => undefined;
        simulation.requestSize(1, 2);
        return simulation.run(simulation.rolloutTimeoutMs + MINUTE_MS);
      },
    ],
    [
      "of an unknown tier",
      "Degraded",
      "Failed",
      /unheard-of/,
      (simulation) => {
        simulation.setTier("unheard-of");
        return aMinute(simulation);
      },
    ],
    [
      "suspended",
      "Suspended",
      "InProgress",
      /^Suspended: /,
      (simulation) => {
        simulation.suspend(1, true);
        return aMinute(simulation);
      },
    ],
    [
      "not observed since a change",
      "Progressing",
      "InProgress",
      /has not seen it yet/,
      (simulation) => {
        simulation.stop();
        simulation.requestSize(1, 2);
      },
    ],
  ])("%s: %s, %s", async (_, argo, flux, message, happens) => {
    const simulation = await settled();
    await happens(simulation);
    const [scaling] = simulation.cluster.scalings.values();
    expect(await judged(scaling ?? {})).toEqual({
      argo: { status: argo, message: expect.stringMatching(message) },
      flux,
    });
    simulation.stop();
  });

  it("is not ready in either right after its creation", async () => {
    // The status that the API server sets as the default of the CRD.
    const metadata = { name: "new", generation: 1 };
    const { argo, flux } = await judged({ metadata, spec: {}, status: { observedGeneration: -1 } });
    expect(argo).toMatchObject({ status: "Progressing" });
    expect(flux).toBe("InProgress");
  });
});
