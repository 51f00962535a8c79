import { describe, expect, it } from "vitest";
import { checkHolder, checkLease } from "../../../../src/cli/doctor/lease.ts";
import { clusterWith } from "./fake-reads.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/records/leases/pipe-scaling-controller";
const HOUR_MS = 3_600_000;

interface Options {
  readonly holder?: string;
  readonly agoMs?: number;
  readonly seconds?: number;
  readonly pods?: readonly string[];
  readonly ready?: number;
  readonly env?: readonly object[];
  readonly args?: readonly string[];
}

/** A cluster with an installation whose controller has these pods. */
function clusterOf({
  holder = "c-1-0123abcd",
  agoMs = 0,
  seconds = 15,
  pods = ["c-1"],
  ready = 1,
  env = [],
  args = [],
}: Options) {
  const labels = {
    "app.kubernetes.io/component": "controller",
    "app.kubernetes.io/part-of": "pipe-scaling-operator",
  };
  const records = { name: "PIPE_SCALING_NAMESPACE", value: "records" };
  const deployment = {
    metadata: { name: "c", namespace: "system", labels },
    spec: {
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "controller", env: [records, ...env], args }] },
      },
    },
    status: { readyReplicas: ready },
  };
  return clusterWith({
    [LEASE]: {
      metadata: { name: "pipe-scaling-controller" },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: seconds,
        renewTime: new Date(Date.now() - agoMs).toISOString(),
      },
    },
    "/apis/apps/v1/deployments": { metadata: {}, items: [deployment] },
    "/api/v1/namespaces/system/pods": { metadata: {}, items: pods.map((name) => ({ metadata: { name } })) },
  });
}

async function results(options: Options) {
  const cluster = clusterOf(options);
  const all = [...(await checkLease(cluster)), ...(await checkHolder(cluster))];
  for (const { severity, remedy } of all) if (severity !== "ok") expect(remedy).toMatch(/kubectl/);
  return all.map(({ severity, message }) => `${severity}: ${message}`);
}

describe("the Lease check of doctor", () => {
  it("accepts a Lease that a pod of the controller has just renewed", async () => {
    expect(await results({})).toEqual([
      "ok: The controller c-1-0123abcd is the leader; it renewed its lease 0 s ago.",
    ]);
  });

  it("accepts a Lease that was renewed a little in the future, because clocks differ", async () => {
    expect(await results({ agoMs: -30_000 })).toEqual([expect.stringMatching(/^ok: /)]);
  });

  it.each([
    ["was last renewed in the future", { agoMs: -3 * HOUR_MS }, /renewal time that is 3 h in the future/],
    ["has a duration above 60 s", { seconds: 2_147_483_647 }, /duration of 24855 d, .* at most 60 s/],
    [
      "has not been renewed in time",
      { agoMs: HOUR_MS },
      /last renewed 60 min ago .* no controller is running/,
    ],
  ])("reports a Lease that %s", async (_, options, message) => {
    const [first] = await results(options);
    expect(first).toMatch(/^error: /);
    expect(first).toMatch(message);
  });

  it.each(["thief-0123abcd", "c-1", "c-1-0123abcd-0123abcd", "c-10-0123abcd", "c-1-xyz"])(
    "reports the holder %s, which is no pod of the controller",
    async (holder) => {
      expect((await results({ holder }))[1]).toMatch(
        /^error: The holder of the Lease .* is not a pod of system\/c/,
      );
    },
  );

  it("knows a pod by the 63 characters of its host name", async () => {
    const name = `${"c".repeat(62)}-9bf86-q2w4x`;
    expect(await results({ pods: [name], holder: `${"c".repeat(62)}-0123abcd` })).toHaveLength(1);
  });

  it.each<[string, Options]>([
    ["no pod of the controller is ready", { ready: 0 }],
    ["its variable names it", { env: [{ name: "PIPE_SCALING_IDENTITY", value: "one" }] }],
    ["its flag names it", { args: ["controller", "--identity=one"] }],
  ])("does not judge the holder if %s", async (_, options) => {
    expect(await results({ holder: "one", ...options })).toHaveLength(1);
  });
});
