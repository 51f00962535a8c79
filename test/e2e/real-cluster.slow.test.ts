import { writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startCluster } from "@pipe-scaling/local-cluster";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { run } from "@pipe-scaling/local-cluster/run";
import { expect, inject, it, onTestFinished } from "vitest";
import * as z from "zod";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { OwnProcess } from "./demo/processes.ts";

const SCRIPTS = fileURLToPath(new URL("real-cluster/", import.meta.url));
const TIMEOUT_MS = 300_000;

it("the scripts for a cluster with real kubelets also pass on the local cluster", {
  timeout: TIMEOUT_MS,
}, async () => {
  // A cluster of its own, because the scripts install a release for the whole cluster.
  const cluster = await startCluster({ nodes: 2 });
  onTestFinished(() => cluster.stop());
  const bin = temporaryFolder();
  const addProgram = (name: string, commands: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${commands}\n`, { mode: 0o755 });
  // Simulated pods run nothing, so they cannot test the API.
  const helm = cluster.binaries.path("helm");
  addProgram("helm", `[ "$1" = test ] || exec "${helm}" "$@"`);
  addProgram("pipe-scaling", `exec "${process.execPath}" "${inject("program")}" "$@"`);
  const script = async (name: string, args: readonly string[], url: string) => {
    const { code, stdout, stderr } = await run(join(SCRIPTS, name), args, {
      cwd: bin,
      env: {
        PATH: [bin, cluster.binaries.dir, environment["PATH"]].join(delimiter),
        HOME: bin,
        KUBECONFIG: cluster.kubeconfig,
        PIPE_SCALING_API_URL: url,
      },
    });
    expect(code, stdout + stderr).toBe(0);
  };

  await script("install.sh", ["docker.io/library/pipe-scaling-operator", "ci"], "");
  const { signal } = new AbortController();
  const common = ["--kubeconfig", cluster.kubeconfig, "--ops-port", "0"];
  const api = new OwnProcess(cluster, "api", [...common, "--port", "0", "--rate-limit", "0"]);
  const controller = new OwnProcess(cluster, "controller", [
    ...common,
    ...["--resize-strategy", "InPlaceOrRollout"],
  ]);
  const [{ url }] = await Promise.all([api.ready(signal), controller.ready(signal)]);

  const port = ["get", "service", "pipe-scaling-operator-api", "--namespace", "pipe-scaling-system"];
  expect(await kubectl(cluster, [...port, "--output", "jsonpath={.spec.ports[0].port}"])).toBe("443");
  await script("story.sh", [], z.string().parse(url));
});
