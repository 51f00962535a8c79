import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openApiDocument } from "../../src/api/openapi/document.ts";
import { OPERATIONS } from "../../src/api/resources/operations.ts";
import { BUILD_MS } from "../chart/checkers/build.ts";
import { pythonGenerator } from "../chart/checkers/python-packages.ts";

const python3 = await run("python3", ["--version"], { env: environment }).catch(() => undefined);
const obstacle = python3?.code === 0 ? undefined : "python3 is not installed";

/** Reads a progress that a later version could send, and prints what the client makes of it. */
const CLIENT = `
import json
from generated import AuthenticatedClient
from generated.api.pipes import update_pipe_scaling
from generated.models import PipeScalingPatch, PipeScalingProgress

progress = PipeScalingProgress.from_dict({
    "state": "failed",
    "reason": "ReasonOfALaterVersion",
    "message": "m",
    "failures": [{"pipe": "p", "reason": "AnotherOne", "message": "m", "attempts": 1, "more": 1}],
    "startedAt": "2026-01-31T12:00:00.000Z",
    "fieldOfALaterVersion": {"a": 1},
})
request = update_pipe_scaling._get_kwargs("o", "s", body=PipeScalingPatch(replica_memory_gb=16))
print(json.dumps({
    "reasons": [progress.reason, progress.failures[0].reason],
    "year": progress.started_at.year,
    "more": progress.additional_properties,
    "body": request["json"],
    "type": request["headers"]["Content-Type"],
}))
`;

describe("openapi-python-client", () => {
  let folder: string;
  let modules: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "python-client-"));
    if (obstacle === undefined) modules = await pythonGenerator();
  }, BUILD_MS);
  beforeEach(({ skip }) => skip(obstacle !== undefined, obstacle));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const python = (args: readonly string[]) => {
    const env = { ...environment, PYTHONPATH: `${modules}:${join(folder, "client")}` };
    return run("python3", args, { env, cwd: folder });
  };

  it("generates a client without a warning, which accepts new reasons and fields", async () => {
    writeFileSync(join(folder, "openapi.json"), JSON.stringify(openApiDocument(OPERATIONS)));
    // Otherwise it would run ruff, which only formats.
    writeFileSync(join(folder, "config.yaml"), "post_hooks: []\npackage_name_override: generated\n");
    const options = ["--path", "openapi.json", "--output-path", "client", "--config", "config.yaml"];
    const generated = await python([
      "-m",
      "openapi_python_client",
      "generate",
      "--fail-on-warning",
      ...options,
    ]);
    expect(generated).toMatchObject({ code: 0 });
    const { stdout, stderr } = await python(["-c", CLIENT]);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual({
      reasons: ["ReasonOfALaterVersion", "AnotherOne"],
      year: 2026,
      more: { fieldOfALaterVersion: { a: 1 } },
      body: { replicaMemoryGb: 16 },
      type: "application/json",
    });
  });
});
