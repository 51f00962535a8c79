import { chmodSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startCluster } from "@pipe-scaling/local-cluster";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { run } from "@pipe-scaling/local-cluster/run";
import { expect, inject, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { OwnProcess } from "./demo/processes.ts";

const STORY = fileURLToPath(new URL("real-cluster/story.sh", import.meta.url));
const CRD = fileURLToPath(new URL("../../crds/pipes.clouddb.dev_pipescalings.yaml", import.meta.url));
const TIMEOUT_MS = 300_000;

it("the story for a cluster with real kubelets also passes on the local cluster", {
  timeout: TIMEOUT_MS,
}, async () => {
  const cluster = await startCluster({ nodes: 2 });
  onTestFinished(() => cluster.stop());
  await kubectl(cluster, ["apply", "--server-side", "-f", CRD]);
  for (const namespace of ["pipe-scaling-records", "acme-pipes"]) {
    await kubectl(cluster, ["create", "namespace", namespace]);
  }
  const { signal } = new AbortController();
  const common = ["--kubeconfig", cluster.kubeconfig, "--ops-port", "0"];
  const api = new OwnProcess(cluster, "api", [...common, "--port", "0", "--rate-limit", "0"]);
  const controller = new OwnProcess(cluster, "controller", [
    ...common,
    ...["--resize-strategy", "InPlaceOrRollout"],
  ]);
  const [{ url }] = await Promise.all([api.ready(signal), controller.ready(signal)]);

  const bin = temporaryFolder();
  const program = join(bin, "pipe-scaling");
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${inject("program")}" "$@"\n`);
  chmodSync(program, 0o755);
  const { code, stdout, stderr } = await run(STORY, [], {
    env: {
      PATH: [bin, cluster.binaries.dir, environment["PATH"]].join(delimiter),
      HOME: bin,
      KUBECONFIG: cluster.kubeconfig,
      PIPE_SCALING_API_URL: url,
    },
  });
  expect(code, stdout + stderr).toBe(0);
});
