import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type ProcessIdentity, programsRunFrom, stateOf, thisProcess } from "../../processes.ts";
import { type ClusterRecord, clusterNames, createFolder } from "../../record.ts";
import { keptLogs, removeCluster, sweep } from "../../remove.ts";
import { startIdle } from "../support/children.ts";
import { bareMachine } from "../support/scratch.ts";

function record(owner: ProcessIdentity | null): ClusterRecord {
  return { owner, binaries: "/", server: "https://127.0.0.1:1", createdAt: new Date().toISOString() };
}

/** Another process, which had the ID of this one before. */
const gone = (): ProcessIdentity => ({ ...thisProcess(), started: "0" });

function machine() {
  const { paths } = bareMachine();
  const dirOf = (name: string) => join(paths.clusters, name);
  return {
    paths,
    dirOf,
    cluster: (name: string, owner: ProcessIdentity | null) => createFolder(paths, name, record(owner)),
    /** Starts a process that looks like a component of the cluster. */
    component: (name: string) => startIdle(dirOf(name), join(dirOf(name), "bin", "etcd")),
  };
}

describe("the next run removes", () => {
  test("a cluster whose owner has ended, with its processes, and keeps its logs", async () => {
    const { paths, cluster, component, dirOf } = machine();
    cluster("left", gone());
    mkdirSync(join(dirOf("left"), "logs", "x"), { recursive: true });
    await component("left");
    expect(sweep(paths)).toEqual(["left"]);
    expect(programsRunFrom(dirOf("left"))).toEqual([]);
    expect(readdirSync(paths.clusters)).toEqual([]);
    expect(readdirSync(keptLogs(paths, "left"))).toEqual(["x"]);
  });

  test("a cluster with a process that was stopped with SIGSTOP", async () => {
    const { paths, cluster, component, dirOf } = machine();
    cluster("left", gone());
    process.kill(await component("left"), "SIGSTOP");
    sweep(paths);
    expect(programsRunFrom(dirOf("left"))).toEqual([]);
  });

  test("a cluster from before a reboot", () => {
    const { paths, cluster } = machine();
    cluster("left", { ...thisProcess(), boot: "another" });
    expect(sweep(paths)).toEqual(["left"]);
  });

  test("a folder without a known owner", () => {
    const { paths, dirOf } = machine();
    mkdirSync(join(dirOf("left"), "bin"), { recursive: true });
    expect(sweep(paths)).toEqual(["left"]);
  });

  test("folders that were not completely created or removed, when they are old", () => {
    const { paths } = machine();
    mkdirSync(join(paths.clusters, ".new-x"));
    mkdirSync(join(paths.clusters, ".removed-x"));
    sweep(paths);
    expect(readdirSync(paths.clusters)).toHaveLength(2);
    // Not 0, because the clock of the file system is more precise, so a new folder can seem to be from the future.
    sweep(paths, -1000);
    expect(readdirSync(paths.clusters)).toEqual([]);
  });
});

describe("the next run keeps", () => {
  test.each([
    ["whose owner is running", thisProcess()],
    ["that has no owner", null],
    ["of another machine that shares the folder", { ...thisProcess(), host: "another", started: "0" }],
  ])("a cluster %s", async (_, owner) => {
    const { paths, cluster, component, dirOf } = machine();
    cluster("theirs", owner);
    await component("theirs");
    expect(sweep(paths)).toEqual([]);
    expect(programsRunFrom(dirOf("theirs"))).toHaveLength(1);
    expect(clusterNames(paths)).toEqual(["theirs"]);
  });

  test("another process that has the ID of an ended component", async () => {
    const { paths, cluster, dirOf } = machine();
    cluster("left", gone());
    const elsewhere = join(paths.cache, "elsewhere");
    const stranger = await startIdle(elsewhere, join(elsewhere, "etcd"));
    mkdirSync(join(dirOf("left"), "pids"));
    symlinkSync(String(stranger), join(dirOf("left"), "pids", "etcd.pid"));
    sweep(paths);
    expect(programsRunFrom(elsewhere)).toHaveLength(1);
  });
});

test("two processes with the same ID are distinguished", () => {
  expect(stateOf(thisProcess())).toBe("running");
  expect(stateOf(gone())).toBe("gone");
  expect(stateOf({ ...thisProcess(), namespace: "another" })).toBe(
    process.platform === "linux" ? "unknown" : "running",
  );
});

describe("on a system without /proc", () => {
  beforeEach(() => {
    const platform = process.platform;
    Object.defineProperty(process, "platform", { value: "darwin" });
    onTestFinished(() => void Object.defineProperty(process, "platform", { value: platform }));
  });

  test("a process with another time zone knows that the owner is running", () => {
    onTestFinished(() => void vi.unstubAllEnvs());
    vi.stubEnv("TZ", "Asia/Tokyo");
    const owner = thisProcess();
    vi.stubEnv("TZ", "America/New_York");
    expect(stateOf(owner)).toBe("running");
    expect(stateOf(gone())).toBe("gone");
  });

  test("the processes of a cluster are found although others have very long command lines", async () => {
    const { dirOf, component } = machine();
    // Some versions of ps print at most 128 KiB of each.
    for (let index = 0; index < 15; index++) {
      const other = spawn("sh", ["-c", "read _", "x".repeat(100_000)]);
      onTestFinished(() => void other.kill());
    }
    await component("left");
    expect(programsRunFrom(dirOf("left"))).toHaveLength(1);
  });
});

test("a name is unique", () => {
  const { paths, cluster } = machine();
  expect(cluster("one", thisProcess())).toBe(true);
  expect(cluster("one", thisProcess())).toBe(false);
  expect(readdirSync(paths.clusters)).toEqual(["one"]);
});

test("the logs of the last ten clusters are kept", () => {
  const { paths, cluster, dirOf } = machine();
  for (let index = 0; index < 12; index++) {
    cluster(`c-${index}`, thisProcess());
    mkdirSync(join(dirOf(`c-${index}`), "logs"));
    removeCluster(paths, `c-${index}`);
  }
  expect(readdirSync(paths.logs)).toHaveLength(10);
});
