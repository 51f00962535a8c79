import { readFileSync, writeFileSync } from "node:fs";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import { DEPLOYMENTS } from "../../src/kube/paths.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { MAIN, startProgram } from "../support/terminal/program.ts";
import { type Pty, type PtyOptions, startInPty } from "../support/terminal/pty.ts";
import { TestEnvironment } from "../support/test-environment.ts";
import { createHeldPipe, release, waitForPipeScalings } from "./held-pipes.ts";

let environment: TestEnvironment;
beforeEach(async () => {
  environment = await TestEnvironment.create("scale");
  await waitForPipeScalings(environment);
});
afterEach(() => environment.end());

/** Creates a PipeScaling without a size. That of running pipes would ask for their size. */
function createScaling(): Promise<unknown> {
  const { pipes, serviceId: name } = environment;
  const made = { apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec: {} };
  return environment.create(PIPE_SCALINGS, pipes, made);
}

function words(...flags: string[]): string[] {
  return wordsFor(environment.cluster.kubeconfig, ...flags);
}

function wordsFor(kubeconfig: string, ...flags: string[]): string[] {
  const where = ["--kubeconfig", kubeconfig, "--namespace", environment.records];
  return ["status", "orders", "--watch", ...where, ...flags];
}

function watchInPty(options?: PtyOptions, ...flags: string[]): Pty {
  return startInPty(process.execPath, [MAIN, ...words(...flags)], options);
}

/** Creates a pipe that rejects every size above its limit. */
async function createLimitedPipe(name: string): Promise<void> {
  const deployment = pipeDeployment({
    name,
    cores: 1,
    namespace: environment.pipes,
    serviceId: environment.serviceId,
  });
  const { template } = deployment.spec;
  // The API server rejects a container with more than this limit of the whole pod.
  const resources = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };
  await environment.create(DEPLOYMENTS, environment.pipes, {
    ...deployment,
    spec: { ...deployment.spec, template: { ...template, spec: { ...template.spec, resources } } },
  });
  // The annotation of the Deployment controller increases the generation, after which a rejected size is tried again.
  const hasRevision = async () => {
    const { metadata, status } = await environment.pipe(name);
    const isSettled = status?.observedGeneration === metadata.generation;
    return isSettled && metadata.annotations?.["deployment.kubernetes.io/revision"] !== undefined;
  };
  await waitFor(hasRevision, { what: "the Deployment controller to have seen the pipe" });
}

describe("status --watch started before a rescale", () => {
  beforeEach(async () => {
    await createHeldPipe(environment, "pipe-a");
    await createHeldPipe(environment, "pipe-b");
  });

  /** Releases the pods of both pipes at their old size, and then at the new size one after the other. */
  async function rescale(watch: { waitFor(pattern: RegExp): Promise<void> }): Promise<void> {
    await watch.waitFor(/No controller has|There is no PipeScaling/);
    for (const name of ["pipe-a", "pipe-b"]) {
      await release(environment, name);
      // The previous size is known only if the pipe has become ready.
      const where = ["--namespace", environment.pipes, "--timeout", "60s"];
      await kubectl(environment.cluster, ["rollout", "status", `deployment/${name}`, ...where]);
    }
    await createScaling();
    await environment.startController();
    await watch.waitFor(/pipe-a.*Rolling/);
    await release(environment, "pipe-a");
    await watch.waitFor(/pipe-b.*Rolling/);
    await release(environment, "pipe-b");
  }

  it("prints line by line in a pipe, and ends with exit code 0", async () => {
    const watch = startProgram(words());
    await rescale(watch);
    expect(await watch.exitCode).toBe(0);
    const printed = watch.out().replace(/^\d+:\d\d {2}/gm, "");
    expect(printed).toMatch(/^unknown: NoPipeScaling: There is no PipeScaling: /m);
    expect(printed).toMatch(/^orders: .*2 cpu \/ 8 Gi$/m);
    const steps = ["pipe-a: Rolling", "pipe-b: Rolling", "propagating, 1/2 pipes", "scaled"];
    expect(steps.map((step) => printed.indexOf(`\n${step}`)).toSorted((one, two) => one - two)).toEqual(
      steps.map((step) => printed.indexOf(`\n${step}`)),
    );
    expect(steps.filter((step) => !printed.includes(`\n${step}`))).toEqual([]);
    expect(printed).toMatch(/\nscaled after \d:\d\d, 2\/2 pipes: Scaled: All 2 pipes run 2 cpu \/ 8 Gi\.\n$/);
    expect(watch.err()).toBe("");
  });

  it("redraws in place on a terminal, and ends with exit code 0", async () => {
    const watch = watchInPty();
    await rescale(watch);
    expect(await watch.exitCode).toBe(0);
    const screen = watch.screen();
    expect(screen.lines.map((line) => line.replace(/\d:\d\d$/, "0:00"))).toEqual([
      "orders  2 cpu / 8 Gi (default of the tier)",
      `${"█".repeat(30)}  2/2 pipes  0:00`,
      "All 2 pipes run 2 cpu / 8 Gi.",
    ]);
    expect(screen.isCursorShown).toBe(true);
    expect(watch.output()).toContain("\u001b[32m");
  });

  it("prints the outcome to standard output as JSON, and the progress to standard error", async () => {
    const watch = startProgram(words("--output", "json"));
    await rescale(watch);
    expect(await watch.exitCode).toBe(0);
    expect(watch.err()).toContain("pipe-b: Rolling\n");
    expect(JSON.parse(watch.out())).toMatchObject({
      id: environment.serviceId,
      name: "orders",
      state: "scaled",
      desired: { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
      pipes: { total: 2, updated: 2, pending: [] },
    });
  });
});

describe("status --watch during a long rollout", () => {
  beforeEach(async () => {
    await createHeldPipe(environment, "pipe-a", 2);
    await environment.startController();
    await environment.waitForCondition("Reconciling", "True");
  });

  it("survives a lost connection", async () => {
    const proxy = await TcpProxy.listen(Number(new URL(environment.cluster.server).port));
    try {
      const kubeconfig = `${environment.cluster.kubeconfig}.${environment.records}`;
      const direct = readFileSync(environment.cluster.kubeconfig, "utf8");
      writeFileSync(
        kubeconfig,
        direct.replace(environment.cluster.server, `https://127.0.0.1:${proxy.port}`),
        {
          mode: 0o600,
        },
      );
      const watch = startProgram(wordsFor(kubeconfig));
      await watch.waitFor(/pipe-a: Rolling/);
      const { target } = proxy;
      proxy.target = 1;
      proxy.cut();
      await watch.waitFor(/(was lost|cannot be reached).*Trying again\./);
      proxy.target = target;
      await watch.waitFor("connected again");
      await release(environment, "pipe-a");
      expect(await watch.exitCode).toBe(0);
      expect(watch.out()).toMatch(
        /scaled after \d:\d\d, 1\/1 pipe: Scaled: The one pipe runs 2 cpu \/ 8 Gi\.\n$/,
      );
    } finally {
      proxy.close();
    }
  });

  it("restores the terminal after Ctrl-C", async () => {
    const watch = watchInPty();
    await watch.waitFor("0/1 pipe");
    watch.write("\u0003");
    expect(await watch.exitCode).toBe(130);
    expect(watch.screen()).toMatchObject({ isCursorShown: true, isWrapping: true });
    expect(watch.screen().lines.at(-1)).toContain("Interrupted.");
  });

  it("ends with exit code 143 after SIGTERM", async () => {
    const watch = startProgram(words());
    await watch.waitFor(/pipe-a: Rolling/);
    watch.signal("SIGTERM");
    expect(await watch.exitCode).toBe(143);
  });

  it("ends with exit code 4 after its timeout, even on a narrow terminal without colors", async () => {
    const watch = watchInPty({ columns: 24, rows: 8, env: { NO_COLOR: "1" } }, "--timeout", "6s");
    expect(await watch.exitCode).toBe(4);
    expect(watch.output()).toContain("The watch timed out after 6 s; the rescale continues.");
    expect(watch.output()).not.toContain("\u001b[1m");
    expect(watch.screen().text).toMatch(/pipe-a +Rolling/);
  });
});

describe("status --watch of a rescale that does not complete", () => {
  it("ends with exit code 3 after a failure, and prints the cause, the time of the next attempt and the next step", async () => {
    await createScaling();
    await createLimitedPipe("pipe-a");
    await environment.startController();
    const watch = startProgram(words());
    expect(await watch.exitCode).toBe(3);
    expect(watch.out()).toMatch(
      /failed, 0\/1 pipe: Refused: pipe-a could not be resized to 2 cpu \/ 8 Gi: .*aggregate container requests/,
    );
    expect(watch.out()).toMatch(/The next attempt is in \d min\.\n$/);
    expect(watch.err()).toContain(
      `kubectl annotate pipescalings ${environment.serviceId} --namespace ${environment.pipes} `,
    );
  });

  it("ends with exit code 3 if the service is suspended", async () => {
    await environment.createPipe({ name: "pipe-a", cores: 2 });
    await environment.startController();
    await environment.waitForCondition("Ready", "True");
    await environment.patchScaling({ suspend: true });
    const watch = watchInPty();
    expect(await watch.exitCode).toBe(3);
    expect(watch.screen().text).toContain("Suspended: ");
    expect(watch.screen().text).toContain('--patch \'{"spec":{"suspend":false}}\'');
  });
});
