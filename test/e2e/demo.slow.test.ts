import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { openPaths } from "@pipe-scaling/local-cluster/paths";
import { programsRunFrom } from "@pipe-scaling/local-cluster/processes";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, onTestFinished, test } from "vitest";

const DEMO = fileURLToPath(new URL("demo.ts", import.meta.url));
/** The demo takes 55 s on an idle machine. 30 s of it are the wait after a smaller memory of the first pipe. */
const TIMEOUT_MS = 400_000;

/** Starts the demo as a user does, with a broken kubeconfig in the environment, which it must ignore. */
function startDemo(...args: string[]) {
  const child = spawn(process.execPath, [DEMO, ...args], {
    env: { ...environment, KUBECONFIG: "/no/such/kubeconfig", PIPE_SCALING_NAMESPACE: "Not A Namespace" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const dir = join(openPaths(environment).clusters, `demo-${child.pid}`);
  return {
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    output: () => output,
    exitCode: new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code))),
    isThere: () => existsSync(dir),
    processes: () => programsRunFrom(dir).map(({ program }) => program.slice(dir.length)),
  };
}

const STORY = [
  /✓ A local Kubernetes cluster runs/,
  /✓ The CRD of PipeScaling and a service account for each process are installed/,
  /✓ Organization Acme Corp .* has a service, a member and an API key/,
  /✓ 4 database pipes of Acme run .*, and s3-archive, a pipe of another type/,
  /mysql-initial-load is a StatefulSet of three pods/,
  /✓ The API listens on http:\/\/127\.0\.0\.1:\d+/,
  /✓ The controller created the PipeScaling of the service: 1 cpu \/ 4 Gi/,
  /✓ GET \/v1\/organizations .*200/,
  /"name":"Acme Corp"/,
  /✓ PATCH …\/pipesCdcScaling .* is accepted: 200/,
  /"status":200,"result":\{"replicaCpuMillicores":4000,"replicaMemoryGb":16\}/,
  /· 0 of 4 pipes done/,
  /· kubectl get psc -A/,
  /NAMESPACE +NAME +DESIRED +EFFECTIVE +PIPES +READY +REASON +AGE/,
  /acme-pipes .* 4 cpu \/ 16 Gi +1 cpu \/ 4 Gi +[123]\/4 +False +Progressing/,
  /· 4 of 4 pipes done/,
  /kubectl wait .* returned together with the last pipe/,
  /✓ mysql-billing, mongodb-events, and mysql-initial-load were resized in place: they have the same pods as before, without a restart/,
  /postgres-orders cannot be resized in place, so it fell back to a rollout: \S/,
  /postgres-orders +1, 4Gi, 4Gi +4, 16Gi, 16Gi/,
  /mysql-initial-load +1, 4Gi, 4Gi +4, 16Gi, 16Gi/,
  /s3-archive +1, 4Gi, 4Gi +unchanged/,
  /mysql-initial-load: currentRevision and updateRevision are mysql-initial-load-\w+/,
  /acme-pipes .* 4 cpu \/ 16 Gi +4 cpu \/ 16 Gi +4\/4 +True +Scaled/,
  /✓ A size between two steps is rejected: 400/,
  /✓ A wrong secret is rejected: 401/,
  /✓ Another tenant's service is rejected: 404/,
  /✓ The platform team moves Acme Corp from tier basic to trial/,
  /· 4 of 4 pipes done/,
  /acme-pipes .* 2 cpu \/ 8 Gi +2 cpu \/ 8 Gi +4\/4 +True +TierLimited/,
  /✓ A size above what the tier allows is rejected: 400/,
  /✓ Both processes have ended, and the cluster is removed/,
  /All steps succeeded/,
];

describe("npm run demo", () => {
  test(
    "runs all steps, ends with 0 and leaves nothing behind",
    async () => {
      const demo = startDemo();
      const code = await demo.exitCode;
      expect(demo.output()).not.toContain("✗");
      let rest = demo.output();
      for (const line of STORY) {
        expect(rest, `after what came before, in the output of the demo:\n${demo.output()}`).toMatch(line);
        rest = rest.slice(rest.search(line) + 1);
      }
      expect(code).toBe(0);
      expect(demo.isThere()).toBe(false);
      expect(demo.processes()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "reports an interruption in the middle of a rollout and leaves nothing behind",
    async () => {
      const demo = startDemo();
      await waitFor(() => demo.output().includes("of 4 pipes done"), {
        what: "the rollout to start",
        timeoutMs: TIMEOUT_MS / 2,
      });
      expect(demo.processes()).toEqual(
        expect.arrayContaining(["/bin/pipe-scaling-api", "/bin/pipe-scaling-controller", "/bin/etcd"]),
      );
      demo.kill("SIGINT");
      expect(await demo.exitCode).toBe(130);
      expect(demo.output()).toContain("Stopped. Everything that the demo started is removed.");
      expect(demo.output()).not.toContain("    at ");
      expect(demo.isThere()).toBe(false);
      expect(demo.processes()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "leaves nothing behind after two signals, although the cluster was to be kept",
    async () => {
      const demo = startDemo("--keep");
      await waitFor(() => demo.output().includes("A local Kubernetes cluster runs"), {
        what: "the cluster to run",
        timeoutMs: TIMEOUT_MS / 2,
      });
      // The installation is under way, whose programs get no signal. Two different signals are never merged into one.
      demo.kill("SIGINT");
      demo.kill("SIGTERM");
      expect(await demo.exitCode).toBeGreaterThan(128);
      expect(demo.isThere()).toBe(false);
      expect(demo.processes()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test("rejects unknown arguments, and its help says that it uses only its own cluster", async () => {
    const unknown = startDemo("--kubeconfig", "x");
    expect(await unknown.exitCode).not.toBe(0);
    expect(unknown.output()).toContain("unknown option '--kubeconfig'");
    const help = startDemo("--help");
    expect(await help.exitCode).toBe(0);
    expect(help.output()).toContain("ignores KUBECONFIG and your own kubeconfig");
    expect(help.output()).toContain("--keep");
  });
});
