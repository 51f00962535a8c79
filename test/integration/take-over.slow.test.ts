import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { helm, tryHelm } from "@pipe-scaling/local-cluster/helm";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION } from "../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import { collectionPath, PODS } from "../../src/kube/paths.ts";
import type { Pod } from "../../src/kube/pods.ts";
import { stepsOf } from "../e2e/tutorial.ts";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { runCommands } from "../support/page-commands.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";

const PAGE = readFileSync(new URL("../../docs/how-to/take-over-pipes.md", import.meta.url), "utf8");
/** The namespace in the page. */
const NAMESPACE = /acme-pipes/g;
/** The template of the chart after its change, as in the page. */
const TEMPLATE = (/^ {3}```yaml\n(.*?)^ {3}```$/ms.exec(PAGE)?.[1] ?? "").replaceAll(/^ {3}/gm, "");
const [KNOW = "", , SERVER_SIDE = "", , PAUSED = ""] = PAGE.split(/^###? /m).slice(1);
/** The error that the page shows. */
const [, CONFLICT = ""] = /^```text\n(.*?)\n```$/ms.exec(PAGE) ?? [];
const RESOURCES =
  "          resources: { requests: { cpu: CORES, memory: MEMORY }, limits: { memory: MEMORY } }\n";
const LABELS = /^.*pipes\.clouddb\.dev.*\n/gm;
const UNLABELED = { name: "without labels", rollouts: 1 };
const LABELED = { name: "with labels", rollouts: 0 };

describe("a pipe whose chart sets resources", () => {
  let environment: TestEnvironment;
  let dir: string;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
    dir = temporaryFolder();
    mkdirSync(join(dir, "my-pipes", "templates"), { recursive: true });
    writeFileSync(join(dir, "my-pipes", "Chart.yaml"), "apiVersion: v2\nname: my-pipes\nversion: 0.1.0\n");
  });
  afterEach(() => environment.end());

  /** Writes the template of the chart. */
  function write(template: string): void {
    writeFileSync(join(dir, "my-pipes", "templates", "pipe.yaml"), template);
  }

  /** The chart of an owner who has not read the page. */
  function withResources(size: { readonly cpu: string; readonly memory: string }): string {
    return TEMPLATE + RESOURCES.replaceAll("CORES", size.cpu).replaceAll("MEMORY", size.memory);
  }

  /** Arguments of helm. */
  function release(verb: "install" | "upgrade", ...flags: readonly string[]): string[] {
    const { pipes, serviceId } = environment;
    const chart = join(dir, "my-pipes");
    return [verb, "my-pipes", chart, "--namespace", pipes, "--set", `service=${serviceId}`, ...flags];
  }

  /** Runs the commands of a section of the page. @param count number of its blocks */
  async function follow(section: string, count: number): Promise<void> {
    const { cluster, pipes, serviceId } = environment;
    const commands = stepsOf(section.replaceAll(NAMESPACE, pipes)).map((step) => step.commands);
    expect(commands).toHaveLength(count);
    await runCommands(cluster, commands, { cwd: dir, variables: { service: serviceId } });
  }

  async function podUids(): Promise<readonly string[]> {
    const { items } = await environment.client.json<{ readonly items: readonly Pod[] }>({
      path: collectionPath(PODS, environment.pipes),
    });
    return items.map(({ metadata }) => metadata.uid).toSorted();
  }

  /** Returns the number of rollouts of the pipe so far. */
  async function revision(): Promise<number> {
    const { metadata } = await environment.pipe("legacy");
    return Number(metadata.annotations?.["deployment.kubernetes.io/revision"]);
  }

  /** Labels restart nothing, so a pipe whose resources are no valid size gets its size when it is requested. */
  async function adopted({ cpu }: { readonly cpu: string }): Promise<void> {
    if (cpu === "500m") {
      await environment.waitForCondition("Ready", "False");
      await follow(KNOW, 1);
    }
    await environment.waitForCondition("Ready", "True", "Scaled");
  }

  function available(): Promise<unknown> {
    const isAvailable = async () => (await environment.pipe("legacy")).status?.availableReplicas === 1;
    return waitFor(isAvailable, { what: "the pipe to be available" });
  }

  it("fails the next upgrade with Helm 4 with a conflict, which changes nothing", async () => {
    const size = { cpu: "500m", memory: "2Gi" };
    write(withResources(size));
    await helm(release("install", "--server-side=true"), environment.cluster);
    await environment.startController();
    await adopted(size);
    const { code, stderr } = await tryHelm(release("upgrade"), environment.cluster);
    expect(code).toBe(1);
    expect(stderr).toContain(CONFLICT.replaceAll(NAMESPACE, environment.pipes));
    expect(CONFLICT).toContain(`"${CONTROLLER_FIELD_MANAGER}"`);
    expect(resourcesOf(await environment.pipe("legacy"))).toBe("1 4Gi 4Gi");
  });

  it("stays as it is when its chart no longer has resources, with Helm 4", async () => {
    write(withResources({ cpu: "2", memory: "8Gi" }));
    await helm(release("install", "--server-side=true"), environment.cluster);
    await environment.startController();
    await available();
    await environment.waitForCondition("Ready", "True", "Scaled");
    const isOwned = async () =>
      (await environment.pipe("legacy")).metadata.annotations?.[LAST_ROLLOUT_ANNOTATION];
    await waitFor(isOwned, { what: "the pipe to be adopted" });
    await follow(SERVER_SIDE, 1);
    const before = await revision();
    const pods = await podUids();
    write(TEMPLATE);
    await helm(release("upgrade", "--wait", "--timeout", "60s"), environment.cluster);
    await environment.waitForCondition("Ready", "True", "Scaled");
    expect(resourcesOf(await environment.pipe("legacy"))).toBe("2 8Gi 8Gi");
    expect(await revision()).toBe(before);
    expect(await podUids()).toEqual(pods);
  });

  const SIZES = [
    { cpu: "500m", memory: "2Gi" },
    // A valid size, which the controller adopts without a write to these fields.
    { cpu: "1", memory: "4Gi" },
  ];
  const cases = [true, false].flatMap((isServerSide) =>
    [UNLABELED, LABELED].flatMap((start) => SIZES.map((size) => ({ isServerSide, start, size }))),
  );

  it.each(cases)(
    "is taken over as the page says, $start.name and $size.cpu CPU, with server-side apply: $isServerSide",
    async ({ isServerSide, start, size }) => {
      const template = withResources(size);
      write(start === LABELED ? template : template.replaceAll(LABELS, ""));
      await helm(release("install", `--server-side=${isServerSide}`), environment.cluster);
      await environment.startController();
      await available();
      if (start === LABELED) await adopted(size);
      const before = await revision();
      const pods = await podUids();

      write(TEMPLATE);
      await follow(PAUSED, 5);

      await environment.waitForCondition("Ready", "True", "Scaled");
      expect(resourcesOf(await environment.pipe("legacy"))).toBe("1 4Gi 4Gi");
      expect((await revision()) - before).toBe(start.rollouts);
      if (start === LABELED) expect(await podUids()).toEqual(pods);
      await helm(release("upgrade", "--wait", "--timeout", "60s"), environment.cluster);
      expect(resourcesOf(await environment.pipe("legacy"))).toBe("1 4Gi 4Gi");
    },
  );
});
