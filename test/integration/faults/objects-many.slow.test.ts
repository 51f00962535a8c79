import { expect } from "vitest";
import { it as base } from "./fixtures.ts";

// A cluster of its own, with room and speed for so many pods.
const clientLimits = { "kube-api-qps": "1000", "kube-api-burst": "2000" };
const syncs = { "concurrent-deployment-syncs": "50", "concurrent-replicaset-syncs": "50" };
const it = base.override(
  "clusterOptions",
  { scope: "file" },
  {
    podStartMs: 50,
    nodeSize: { cpus: 10_000, memoryGib: 100_000 },
    componentArgs: {
      "kube-controller-manager": { ...clientLimits, ...syncs },
      "kube-scheduler": clientLimits,
    },
  },
);

it("a service of 200 pipes is rescaled one first, then a quarter at a time", {
  timeout: 360_000,
}, async ({ environment, invariants, requestSize }) => {
  const names = Array.from({ length: 200 }, (_, index) => `pipe-${index}`);
  invariants.accept(1);
  await environment.startController();
  for (let at = 0; at < names.length; at += 20)
    await Promise.all(names.slice(at, at + 20).map((name) => environment.createPipe({ name, cores: 1 })));
  await invariants.settled(1, { quietMs: 0, timeoutMs: 150_000 });
  await requestSize(2);
  await invariants.settled(2, { quietMs: 1000, timeoutMs: 150_000 });
  await invariants.end();
  expect((await environment.scaling()).status?.pipes?.summary).toBe("200/200");
});
