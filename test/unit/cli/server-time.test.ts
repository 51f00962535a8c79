import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../../src/all-commands.ts";
import { runProgram } from "../../../src/cli/program.ts";
import { CONTROLLER_FIELD_MANAGER, IGNORE_WINDOW_ANNOTATION } from "../../../src/crd/names.ts";
import { type FakeResponse, startFakeHttpServer } from "../../support/fakes/fake-http-server.ts";
import { fakeIo } from "../../support/fakes/fake-io.ts";
import { historyEntry } from "../../support/fixtures/history-entry.ts";
import { writeKubeconfig } from "../../support/fixtures/kubeconfig.ts";
import { pipeDeployment } from "../../support/fixtures/pipe.ts";
import { organizationRecord, serviceRecord } from "../../support/fixtures/records.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SIZE = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };
const organizationId = randomUUID();
const rolloutWindow = '{schedule: "0 * * * *", duration: 30m, timeZone: UTC}';
const organization = organizationRecord({ id: organizationId }, { rolloutWindow });
const service = serviceRecord({ organizationId, namespace: "pipes" });
const ID = service.metadata.name.slice("service-".length);

type State = "scaled" | "boosted" | "failed";

/**
 * A boost that ends an hour after the time of the API server, or a rescale that began 5 minutes before it and is tried
 * again 10 minutes after it.
 */
function scalingAt(serverNowMs: number, state: State) {
  const history = [historyEntry(4), historyEntry(2)];
  const until = new Date(serverNowMs + HOUR_MS).toISOString();
  const boost = { replicaCpuMillicores: 16_000, replicaMemoryGb: 64, until };
  const boosted = { boost: { ...boost, summary: "16 cpu / 64 Gi" } };
  const failed = {
    pipes: { total: 1, updated: 0 },
    propagation: { requestId: "r", startedAt: new Date(serverNowMs - 5 * MINUTE_MS).toISOString() },
    failures: [{ pipe: "a", nextRetryAt: new Date(serverNowMs + 10 * MINUTE_MS).toISOString() }],
  };
  const type = state === "failed" ? "Stalled" : "Ready";
  const condition = { type, status: "True", reason: "Scaled", message: "" };
  const conditions = [{ ...condition, lastTransitionTime: "2026-01-01T00:00:00Z" }];
  const extra = { scaled: {}, boosted, failed }[state];
  return {
    metadata: { name: ID, namespace: "pipes", uid: "u", resourceVersion: "7", generation: 1 },
    spec: { ...SIZE, ...(state === "boosted" ? { boost } : {}) },
    status: { observedGeneration: 1, history, desired: history[0], conditions, ...extra },
  };
}

/** A Deployment that the controller paused a moment before the time of the API server. */
function pausedAt(serverNowMs: number) {
  const pipe = pipeDeployment({ name: "a", namespace: "pipes", serviceId: ID, cores: 4 });
  const entry = {
    manager: CONTROLLER_FIELD_MANAGER,
    operation: "Update",
    apiVersion: "apps/v1",
    fieldsType: "FieldsV1",
    time: new Date(serverNowMs - 5000).toISOString(),
    fieldsV1: { "f:spec": { "f:paused": {} } },
  };
  return {
    ...pipe,
    metadata: { ...pipe.metadata, uid: "p", managedFields: [entry] },
    spec: { ...pipe.spec, paused: true },
  };
}

/** Runs a command on a cluster whose time differs from that of this machine. */
async function run(words: readonly string[], hoursAhead: number, state: State = "scaled") {
  const serverNowMs = Math.floor(Date.now() / 1000) * 1000 - hoursAhead * HOUR_MS;
  const scaling = scalingAt(serverNowMs, state);
  const bodyFor = (path: string): object => {
    if (path.includes("/configmaps/service-")) return service;
    if (path.includes("/configmaps/organization-")) return organization;
    if (path.includes("/configmaps?")) return { metadata: {}, items: [service] };
    if (path.includes(`/pipescalings/${ID}`)) return scaling;
    if (path.includes("/pipescalings?")) return { metadata: {}, items: [scaling] };
    if (path.includes("/deployments?")) return { metadata: {}, items: [pausedAt(serverNowMs)] };
    return { metadata: {}, items: [] };
  };
  const { url, requests } = await startFakeHttpServer(({ path }): FakeResponse => {
    return { body: bodyFor(path), headers: { Date: new Date(serverNowMs).toUTCString() } };
  });
  const io = fakeIo({ output: words.includes("--watch") });
  const code = await runProgram(COMMANDS, [...words, "--kubeconfig", writeKubeconfig(url)], io);
  const writes = requests.filter(({ method }) => method === "PATCH");
  return { code, ...io.written, writes, serverNowMs };
}

describe.each([-24, 24])("with a clock of this machine that is %i h ahead of the cluster", (hoursAhead) => {
  test.each([
    ["admin service open-window", ["admin", "service", "open-window", ID, "--for", "30m"], HOUR_MS / 2],
    ["admin service rollback --now", ["admin", "service", "rollback", ID, "--now"], 2 * HOUR_MS],
  ])("%s opens the window for the whole time, and no longer", async (_, words, forMs) => {
    const { code, writes, serverNowMs } = await run(words, hoursAhead);
    expect(code).toBe(0);
    const { metadata } = Object(writes[0]?.body);
    const until = Date.parse(metadata.annotations[IGNORE_WINDOW_ANNOTATION]);
    expect(Math.abs(until - serverNowMs - forMs)).toBeLessThan(60_000);
  });

  test("admin service rollback writes nothing during a boost", async () => {
    const { err, writes } = await run(["admin", "service", "rollback", ID], hoursAhead, "boosted");
    expect(err).toContain("has a boost to 16 cpu / 64 Gi until");
    expect(writes).toEqual([]);
  });

  test.each([
    ["status", ["status", ID, "--output", "json"]],
    ["admin service show", ["admin", "service", "show", ID, "--output", "json"]],
  ])("%s shows a boost until it ends", async (_, words) => {
    const { out } = await run(words, hoursAhead, "boosted");
    expect(JSON.parse(out)).toMatchObject({ state: "scaled", boost: expect.anything() });
  });

  test("status --watch shows how long a rescale has taken, and when it is tried again", async () => {
    const { code, out } = await run(["status", ID, "--watch"], hoursAhead, "failed");
    expect(out).toMatch(/ (4:5[789]|5:0[0123])\n/);
    expect(out).toContain("The next attempt is in 10 min.");
    expect(code).toBe(3);
  });

  test.each([
    ["admin service show", ["admin", "service", "show", ID]],
    ["admin organization show", ["admin", "organization", "show", organizationId]],
  ])("%s shows until when the rollout window is open or closed", async (_, words) => {
    const { out, serverNowMs } = await run([...words, "--output", "json"], hoursAhead);
    const { rolloutWindowState } = JSON.parse(out);
    const until = Date.parse(rolloutWindowState.replace(/^(open|closed) until /, ""));
    expect(until).toBeGreaterThanOrEqual(serverNowMs);
    expect(until).toBeLessThan(serverNowMs + HOUR_MS);
  });

  test("doctor does not report a commit that has just begun", async () => {
    const { out } = await run(["doctor"], hoursAhead);
    expect(out).toContain("The controller has left no Deployment or StatefulSet paused.");
    expect(out).not.toContain("did not resume it");
  });
});
