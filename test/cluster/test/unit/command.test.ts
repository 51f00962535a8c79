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

/** Runs `npx local-cluster <args>` on a machine without programs. */
async function command(args: readonly string[], more: Environment = {}) {
  const { env, paths } = bareMachine();
  const child = startNode(new URL("../../main.ts", import.meta.url), args, { ...env, ...more });
  const code = await child.waitForEnd();
  return { code, stdout: child.stdout, stderr: child.stderr, left: readdirSync(paths.clusters) };
}

describe("the command line reports a mistake with a sentence and exit code 1:", () => {
  test.each([
    [["upp"], /unknown command 'upp'\n\(Did you mean up\?\)/],
    [["up", "--nme", "x"], /unknown option '--nme'\n\(Did you mean --name\?\)/],
    [["up", "--name"], /option '--name <name>' argument missing/],
    [["up", "--port", "70000"], /Use a whole number from 1 to 65535\./],
    [
      ["up", "--kubernetes-version", "1.35"],
      /"1\.35" is not a version of Kubernetes\. Use a released version/,
    ],
    [["up", "--nodes", "many"], /Use a whole number not less than 0\./],
    [["up", "--name", "No_Good"], /"No_Good" is not a valid name of a cluster: use at most 40 lowercase/],
    [["down", "--all", "--name", "x"], /option '--all' cannot be used with option '--name <name>'/],
    [["down", "--name", "x"], /There is no cluster named "x"\. There are no others\./],
    [
      ["env", "--name", "x"],
      /There is no cluster named "x"\. There are no others\. To start it: npx local-cluster up --name x/,
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
      `Port ${port} of 127.0.0.1 is in use, or you have no permission to use it. Choose another port, or none to get a free one.\n`,
    );
    expect({ code, left }).toEqual({ code: 1, left: [] });
  });

  test("a failure of kwokctl, which leaves only its log", async () => {
    const programs = writePrograms(scratch());
    writeProgram(programs, "kwokctl", "#!/bin/sh\necho 'etcd is not supported' >&2; exit 1\n");
    const { code, stderr, left } = await command(["up"], { PIPE_SCALING_CLUSTER_BINARIES: programs });
    expect(stderr).toMatch(
      /^Cluster "pipes" could not be started: kwokctl could not start .*\netcd is not supported/,
    );
    expect(stderr).toMatch(/Its logs are in .*logs\/pipes\n$/);
    expect({ code, left }).toEqual({ code: 1, left: [] });
  });
});

test("the start fails immediately if a component exits, with the end of its log", async () => {
  const { env, paths } = bareMachine();
  const programs = writePrograms(scratch());
  // Like the real kwokctl, it waits for a component that has exited because of an invalid argument.
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
    /Cluster "doomed" could not be started: kube-apiserver exited\..*\nunknown flag: --wrong\n/,
  );
  expect(readdirSync(paths.clusters)).toEqual([]);
});

test.each([
  ["ENOSPC", /^The disk of \/cache is full\. Free about 1 GB .* another disk\.$/],
  ["EROFS", /^The local cluster cannot write to \/cache \(EROFS\)\. Make it a writable folder, or set/],
])("an error %s of the disk is reported with a sentence", (code, sentence) => {
  expect(cannotWrite("/cache", Object.assign(new Error(code), { code })).message).toMatch(sentence);
});
