import { describe, expect, it } from "vitest";
import { setUpEnvironment } from "../api/fixtures.ts";
import { run, start, WAYS } from "./run-command.ts";

const environment = setUpEnvironment("cli-processes");

describe.each(WAYS)("%s", (way) => {
  it("controller --dry-run prints what it would do", async () => {
    const where = ["--kubeconfig", environment.cluster.kubeconfig, "--namespace", environment.records];
    const words = ["controller", "--dry-run", ...where, "--pipe-namespaces", environment.pipes];
    const { code, text } = await run(way, words, {});
    expect(text).toContain("Dry run: nothing was written. Services: 0, pipes: 0. There is nothing to do.");
    expect(code).toBe(0);
  });

  it.each([
    ["api", ["--port", "0"]],
    ["controller", []],
  ])("%s runs until Ctrl-C, and ends with exit code 0", async (name, flags) => {
    // Without these flags, it would process the PipeScalings of other tests.
    const where = ["--kubeconfig", environment.cluster.kubeconfig, "--namespace", environment.records];
    where.push("--pipe-namespaces", environment.pipes);
    const running = start(way, [name, ...flags, ...where, "--ops-port", "0"], {});
    await running.waitFor(/"msg":"listening"/);
    if ("write" in running) running.write("\x03");
    else running.signal("SIGINT");
    expect(await running.exitCode).toBe(0);
  });
});
