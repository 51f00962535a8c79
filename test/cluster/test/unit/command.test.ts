import { readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { startCluster } from "../../cluster.ts";
import type { Environment } from "../../environment.ts";
import { cannotWrite } from "../../paths.ts";
import { silentProgress } from "../../progress.ts";
import { startNode } from "../support/children.ts";
import { writeProgram, writePrograms } from "../support/fake-programs.ts";
import { bareMachine, scratch } from "../support/scratch.ts";

/** npm run cluster -- <args>, on a machine that has nothing. */
async function command(args: readonly string[], more: Environment = {}) {
  const { env, paths } = bareMachine();
  const child = startNode(new URL("../../main.ts", import.meta.url), args, { ...env, ...more });
  const code = await child.ends();
  return { code, stdout: child.stdout, stderr: child.stderr, left: readdirSync(paths.clusters) };
}

describe("the command line reports a mistake with a sentence and exit code 1:", () => {
  test.each([
    [["upp"], /unknown command 'upp'\n\(Did you mean up\?\)/],
    [["up", "--nme", "x"], /unknown option '--nme'\n\(Did you mean --name\?\)/],
    [["up", "--name"], /option '--name <name>' argument missing/],
    [["up", "--port", "70000"], /Give a whole number from 1 to 65535\./],
    [
      ["up", "--kubernetes-version", "1.35"],
      /"1\.35" is not a version of Kubernetes\. Give a released version/,
    ],
    [["up", "--nodes", "many"], /Give a whole number of at least 0\./],
    [["up", "--name", "No_Good"], /"No_Good" cannot be the name of a cluster: give at most 40 lower case/],
    [["down", "--all", "--name", "x"], /option '--all' cannot be used with option '--name <name>'/],
    [["down", "--name", "x"], /No cluster named "x" runs\. None does\./],
    [
      ["env", "--name", "x"],
      /No cluster named "x" runs\. None does\. Start it: npm run cluster -- up --name x/,
    ],
    [["up"], /Cannot find the programs of the local cluster\. Tried:/],
  ])("%j", async (args, sentence) => {
    const { code, stderr, stdout, left } = await command(args);
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toContain("    at ");
    expect({ code, stdout, left }).toEqual({ code: 1, stdout: "", left: [] });
  });

  test("a cache folder that is a file", async () => {
    const file = join(scratch(), "file");
    writeFileSync(file, "");
    const { code, stderr } = await command(["list"], { PIPE_SCALING_CACHE_DIR: file });
    expect(stderr).toMatch(
      /^The local cluster cannot write to .*file .*set PIPE_SCALING_CACHE_DIR to a folder/,
    );
    expect(code).toBe(1);
  });

  test("a port that is in use", async () => {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = String(typeof address === "object" ? address?.port : undefined);
    const { code, stderr, left } = await command(["up", "--port", port]);
    expect(stderr).toBe(
      `Port ${port} of 127.0.0.1 is in use (or not yours to use). Give another one, or none, and a free one is chosen.\n`,
    );
    expect({ code, left }).toEqual({ code: 1, left: [] });
  });

  test("a start that kwokctl refuses: nothing is left but its log", async () => {
    const programs = writePrograms(scratch());
    writeProgram(programs, "kwokctl", "#!/bin/sh\necho 'etcd is not to my taste' >&2; exit 1\n");
    const { code, stderr, left } = await command(["up"], { PIPE_SCALING_CLUSTER_BINARIES: programs });
    expect(stderr).toMatch(
      /^Cluster "pipes" did not come up: kwokctl could not start .*\netcd is not to my taste/,
    );
    expect(stderr).toMatch(/Its logs are in .*logs\/pipes\n$/);
    expect({ code, left }).toEqual({ code: 1, left: [] });
  });
});

test("a component that dies at once ends the start at once, with its last words", async () => {
  const { env, paths } = bareMachine();
  const programs = writePrograms(scratch());
  // Does what kwokctl does to a component that has a wrong argument, and goes on waiting for it.
  writeProgram(
    programs,
    "kwokctl",
    `#!/bin/sh
cd "$KWOK_WORKDIR/clusters/doomed" && /bin/mkdir -p pids logs
echo 'unknown flag: --wrong' > logs/kube-apiserver.log
echo 1 > pids/kube-apiserver.pid
while :; do /bin/sleep 0.05; done
`,
  );
  const start = startCluster({
    name: "doomed",
    env: { ...env, PIPE_SCALING_CLUSTER_BINARIES: programs },
    progress: silentProgress,
  });
  await expect(start).rejects.toThrow(
    /Cluster "doomed" did not come up: kube-apiserver ended by itself.*\nunknown flag: --wrong\n/,
  );
  expect(readdirSync(paths.clusters)).toEqual([]);
});

test.each([
  ["ENOSPC", /^There is no room left where .*\/cache\. Free about 1 GB .* another disk\.$/],
  [
    "EROFS",
    /^The local cluster cannot write to \/cache \(EROFS\)\. Make it a folder that you can write to, or set/,
  ],
])("an error %s of the disk is a sentence", (code, sentence) => {
  expect(cannotWrite("/cache", Object.assign(new Error(code), { code })).message).toMatch(sentence);
});
