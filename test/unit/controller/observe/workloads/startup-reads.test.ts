import { describe, expect, it } from "vitest";
import { startupReadsOf } from "../../../../../src/controller/observe/workloads/startup-reads.ts";
import type { EnvVar, PodSpec, TemplateContainer } from "../../../../../src/kube/pods.ts";

function reads(
  container: Partial<TemplateContainer>,
  { spec = {}, cpuLimitFollows = false }: { spec?: Partial<PodSpec>; cpuLimitFollows?: boolean } = {},
): string[] {
  const own = { name: "pipe", ...container };
  const template = { spec: { containers: [own], ...spec } };
  return startupReadsOf(template, own, cpuLimitFollows).map(
    ({ resource, reason, message }) => `${resource} ${reason}: ${message}`,
  );
}

function variable(resource: string, containerName?: string): EnvVar {
  return {
    name: "SIZE",
    valueFrom: { resourceFieldRef: { resource, ...(containerName ? { containerName } : {}) } },
  };
}

const inPipe = (resource: string) => ({ env: [variable(resource)] });

describe("a pod template whose programs read their size when they start", () => {
  it.each([
    ["requests.cpu", "cpu"],
    ["requests.memory", "memory"],
    ["limits.memory", "memory"],
  ])("has a variable with %s of the container", (resource, changed) => {
    expect(reads(inPipe(resource))).toEqual([
      `${changed} SizeFromEnvironment: the variable SIZE of the container pipe gets ${resource} only when the container starts`,
    ]);
  });

  it("has a variable with a CPU limit that follows the size", () => {
    expect(reads(inPipe("limits.cpu"), { cpuLimitFollows: true })).toHaveLength(1);
    expect(reads(inPipe("limits.cpu"))).toEqual([]);
  });

  it("has a variable in another container, or in a sidecar, that names the container", () => {
    const other = { name: "other", env: [variable("limits.memory", "pipe")] };
    expect(reads({}, { spec: { containers: [{ name: "pipe" }, other] } })).toEqual([
      expect.stringContaining("the variable SIZE of the container other gets limits.memory"),
    ]);
    const sidecar = { ...other, restartPolicy: "Always" };
    expect(reads({}, { spec: { initContainers: [sidecar] } })).toHaveLength(1);
  });

  it.each<[string, Partial<PodSpec>]>([
    [
      "of another container",
      { containers: [{ name: "pipe" }, { name: "other", env: [variable("limits.memory")] }] },
    ],
    [
      "of an init container that has ended",
      { initContainers: [{ name: "x", env: [variable("limits.memory", "pipe")] }] },
    ],
    ["with a value", { containers: [{ name: "pipe", env: [{ name: "GOMEMLIMIT", value: "3GiB" }] }] }],
    ["with storage", { containers: [{ name: "pipe", env: [variable("limits.ephemeral-storage")] }] }],
  ])("is not one with only a variable %s", (_, spec) => {
    expect(reads({}, { spec })).toEqual([]);
  });

  it.each<[string, Partial<TemplateContainer>, string]>([
    ["arguments", { args: ["-XX:MaxRAMPercentage=75.0", "-jar"] }, "-XX:MaxRAMPercentage=75.0"],
    [
      "a shell command",
      { command: ["sh", "-c", "java -XX:InitialRAMPercentage=50 -jar x"] },
      "-XX:InitialRAMPercentage=50",
    ],
    [
      "a variable",
      { env: [{ name: "JAVA_TOOL_OPTIONS", value: "-Dx=y -XX:MinRAMPercentage=40" }] },
      "-XX:MinRAMPercentage=40",
    ],
    ["an older option", { args: ["-XX:MaxRAMFraction=2"] }, "-XX:MaxRAMFraction=2"],
    [
      "options of Node.js",
      { env: [{ name: "NODE_OPTIONS", value: "--max-old-space-size-percentage=75" }] },
      "--max-old-space-size-percentage=75",
    ],
  ])("has a share of the memory in %s", (_, container, option) => {
    expect(reads(container)).toEqual([
      `memory SizeFromPercentage: its program computes its memory from ${option} only when it starts`,
    ]);
  });

  it.each(["-Xmx3g", "-XX:MaxHeapSize=3g"])(
    "is not one of a JVM with a fixed heap (%s), which ignores a share of the memory",
    (value) => {
      expect(reads({ args: ["-XX:MaxRAMPercentage=75"], env: [{ name: "JAVA_OPTS", value }] })).toEqual([]);
    },
  );

  it("has one reason for each resource", () => {
    const env = [variable("requests.cpu"), variable("limits.memory"), variable("requests.memory")];
    expect(reads({ env, args: ["-XX:MaxRAMPercentage=75"] })).toEqual([
      expect.stringContaining("cpu SizeFromEnvironment"),
      expect.stringContaining("memory SizeFromEnvironment"),
    ]);
  });

  it("has reasons without the values of variables, which may be secret", () => {
    const env = [{ name: "JAVA_OPTS", value: "-Dpassword=secret -XX:MaxRAMPercentage=75" }];
    expect(reads({ env }).join()).not.toContain("secret");
  });
});
