import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { IGNORE_WINDOW_ANNOTATION } from "../../src/crd/names.ts";
import type { ConfigMap } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, objectPath } from "../../src/kube/paths.ts";
import { recordLabels } from "../../src/records/labels.ts";
import { PIPE_SCALINGS } from "../api/environment.ts";
import { serviceRecord } from "../support/fixtures/records.ts";
import { AdminTestEnvironment } from "./admin-environment.ts";

let records: AdminTestEnvironment;
let organization: string;

beforeAll(async () => {
  records = await AdminTestEnvironment.create("cli-services");
  organization = await records.environment.addOrganization();
});

afterAll(() => records?.remove());

const shown = z.looseObject({ id: z.guid() });

describe("admin service show", () => {
  it("prints the record and a summary of its PipeScaling", async () => {
    const id = await records.environment.addService(organization);
    const record = { id, organizationId: organization, name: "orders", namespace: records.environment.pipes };
    expect(await records.json(shown, `admin service show ${id}`)).toEqual({
      ...record,
      state: "unknown",
      reason: "NoPipeScaling",
      message: "There is no PipeScaling: the controller creates it when it sees a pipe of this service.",
      history: [],
    });

    await records.environment.addScaling(id, { suspend: true }, 2);
    expect(await records.json(shown, `admin service show ${id}`)).toEqual({
      ...record,
      effective: "2 cpu / 8 Gi",
      state: "unknown",
      reason: "NotObservedYet",
      message: "No controller has observed the PipeScaling yet.",
      history: [],
    });
    expect((await records.run(`admin service show ${id.toUpperCase()}`)).out).toMatch(
      /\nEFFECTIVE +2 cpu \/ 8 Gi\n/,
    );
  });

  it("prints the history of sizes, newest first", async () => {
    const id = await records.environment.addService(organization);
    await records.environment.addScaling(id, {});
    const AT = "2026-06-01T12:00:00Z";
    const [four, one] = [
      { replicaCpuMillicores: 4000, replicaMemoryGb: 16, summary: "4 cpu / 16 Gi", source: "Spec" },
      { replicaCpuMillicores: 1000, replicaMemoryGb: 4, summary: "1 cpu / 4 Gi", source: "TierDefault" },
    ];
    const history = [
      { ...four, result: "Progressing", requestId: "request-1", startedAt: AT },
      { ...one, result: "Scaled", startedAt: AT, completedAt: AT },
    ];
    await records.environment.admin.json({
      method: "PATCH",
      path: `${objectPath(PIPE_SCALINGS, records.environment.pipes, id)}/status`,
      patchType: "application/merge-patch+json",
      body: { status: { history } },
    });
    expect((await records.run(`admin service show ${id}`)).out.split("\n").slice(-5)).toEqual([
      "HISTORY",
      "SIZE           SOURCE       RESULT       STARTED AT            COMPLETED AT          REQUEST ID",
      "4 cpu / 16 Gi  Spec         Progressing  2026-06-01T12:00:00Z  -                     request-1",
      "1 cpu / 4 Gi   TierDefault  Scaled       2026-06-01T12:00:00Z  2026-06-01T12:00:00Z  -",
      "",
    ]);
    expect((await records.json(shown, `admin service show ${id}`))["history"]).toEqual([
      { size: "4 cpu / 16 Gi", source: "Spec", result: "Progressing", startedAt: AT, requestId: "request-1" },
      { size: "1 cpu / 4 Gi", source: "TierDefault", result: "Scaled", startedAt: AT, completedAt: AT },
    ]);
  });

  it("prints the next step for an unknown or malformed service", async () => {
    const id = randomUUID();
    expect(await records.run(`admin service show ${id}`)).toEqual({
      code: 1,
      out: "",
      err: `There is no service with the ID ${id} in the namespace ${records.environment.records}. To list the IDs: pipe-scaling admin service list ${records.clusterFlags.join(" ")}\n`,
    });
    const malformed = serviceRecord({ organizationId: organization, namespace: "Not a namespace" });
    await records.environment.addRecord(malformed);
    const { code, err } = await records.run(
      `admin service show ${malformed.metadata.name.slice("service-".length)}`,
    );
    expect(code).toBe(1);
    expect(err).toContain(`kubectl edit configmap ${malformed.metadata.name}`);
  });
});

describe("admin service open-window", () => {
  const opened = z.object({
    id: z.guid(),
    name: z.string(),
    namespace: z.string(),
    openUntil: z.iso.datetime(),
  });

  it.each([
    ["two hours", [], 2 * 3_600_000],
    ["the time of --for", ["--for", "30m"], 30 * 60_000],
  ])("lets rollouts start outside the window for %s, and changes nothing else", async (_, flags, forMs) => {
    const id = await records.environment.addService(organization);
    await records.environment.addScaling(id, { replicaCpuMillicores: 2000, replicaMemoryGb: 8 }, 2);
    const before = Date.now();
    const { openUntil } = await records.json(opened, ["admin", "service", "open-window", id, ...flags]);
    expect(Date.parse(openUntil) - forMs).toBeGreaterThanOrEqual(before);
    expect(Date.parse(openUntil) - forMs).toBeLessThanOrEqual(Date.now());
    const scaling = await records.environment.scaling(id);
    expect(scaling.metadata.annotations).toEqual({ [IGNORE_WINDOW_ANNOTATION]: openUntil });
    expect(scaling.spec).toEqual({ replicaCpuMillicores: 2000, replicaMemoryGb: 8 });
  });

  it("reports that no rollout waits if the service has no PipeScaling", async () => {
    const id = await records.environment.addService(organization);
    const { pipes } = records.environment;
    expect(await records.run(`admin service open-window ${id}`)).toMatchObject({
      code: 1,
      err: `Service ${id} has no PipeScaling in the namespace ${pipes}, so no rollout waits. The controller creates it when it sees the first database pipe of the service.\n`,
    });
  });
});

describe("admin service update", () => {
  const saturdays = {
    schedule: "0 2 * * 6",
    duration: "4h",
    timeZone: "Europe/Berlin",
    appliesTo: "restarts",
  };
  const written = JSON.stringify(saturdays);

  it("changes only the name and the rollout window", async () => {
    const id = await records.environment.addService(organization);
    const record = { id, organizationId: organization, name: "orders", namespace: records.environment.pipes };
    const update = (...change: readonly string[]) =>
      records.json(shown, ["admin", "service", "update", id, ...change]);
    expect(await update("--rollout-window", written)).toEqual({ ...record, rolloutWindow: saturdays });
    expect(await update("--name", "billing")).toEqual({
      ...record,
      name: "billing",
      rolloutWindow: saturdays,
    });
    expect((await records.object<ConfigMap>(CONFIG_MAPS, `service-${id}`))?.data).toEqual({
      name: "billing",
      namespace: records.environment.pipes,
      rolloutWindow:
        '{ schedule: "0 2 * * 6", duration: "4h", timeZone: "Europe/Berlin", appliesTo: "restarts" }',
    });
    expect(await update("--name", "orders", "--rollout-window", "none")).toEqual(record);
    expect((await records.object<ConfigMap>(CONFIG_MAPS, `service-${id}`))?.data).toEqual({
      name: "orders",
      namespace: records.environment.pipes,
    });
  });

  it("rejects a command without a change, an unknown service and a malformed record", async () => {
    const id = await records.environment.addService(organization);
    expect(await records.run(`admin service update ${id}`)).toMatchObject({
      code: 2,
      err: expect.stringContaining("Nothing to change. Specify --name or --rollout-window."),
    });
    const unknown = await records.run(`admin service update ${randomUUID()} --name billing`);
    expect(unknown).toMatchObject({
      code: 1,
      err: expect.stringContaining("There is no service with the ID"),
    });
    const malformed = serviceRecord({ organizationId: organization, namespace: records.environment.pipes });
    const record = { ...malformed, data: { ...malformed.data, rolloutWindow: "always" } };
    await records.environment.addRecord(record);
    const { code, err } = await records.run(
      `admin service update ${malformed.metadata.name.slice("service-".length)} --name billing`,
    );
    expect(code).toBe(1);
    expect(err).toContain(`kubectl edit configmap ${malformed.metadata.name}`);
    expect(err).toContain("rolloutWindow: it must be a YAML map such as ");
  });

  it("overrides the organization's rollout window, which admin service show prints by default", async () => {
    const owner = await records.environment.addOrganization();
    const words = `admin service create --organization ${owner} --name orders --pipes-namespace ${records.environment.pipes}`;
    const { id } = await records.json(shown, words);
    await records.json(shown, ["admin", "organization", "update", owner, "--rollout-window", written]);
    const shownWindow = async () => (await records.json(shown, `admin service show ${id}`))["rolloutWindow"];
    expect(await shownWindow()).toEqual(saturdays);
    await records.environment.admin.json({
      method: "PATCH",
      path: objectPath(CONFIG_MAPS, records.environment.records, `organization-${owner}`),
      patchType: "application/merge-patch+json",
      body: { data: { rolloutWindow: "always" } },
    });
    const malformed = await records.run(`admin service show ${id}`);
    expect(malformed).toMatchObject({ code: 0, out: expect.stringMatching(/\nROLLOUT WINDOW +-\n/) });
    expect(malformed.err).toContain(
      `The record organization-${owner} is malformed and was skipped: rolloutWindow: `,
    );
    const always = { schedule: "* * * * *", duration: "15m", timeZone: "UTC", appliesTo: "restarts" };
    await records.json(shown, ["admin", "service", "update", id, "--rollout-window", JSON.stringify(always)]);
    expect(await shownWindow()).toEqual(always);
    expect((await records.run(`admin service show ${id}`)).out).toMatch(
      /\nROLLOUT WINDOW STATE +open until 20\S+Z\n/,
    );
  });
});

describe("admin service delete", () => {
  it("asks for confirmation, deletes the record and its backup settings, and does not change the PipeScaling", async () => {
    const id = await records.environment.addService(organization);
    await records.environment.addScaling(id, {}, 2);
    const labels = recordLabels("backup", organization);
    const backup = { kind: "ConfigMap", metadata: { name: `backup-${id}`, labels }, data: {} };
    await records.environment.addRecord(backup);
    const scaling = await records.environment.scaling(id);
    const words = `admin service delete ${id}`;

    expect(await records.run(words)).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        `Delete service orders (${id}) with its settings? Standard input is not a terminal`,
      ),
    });
    expect((await records.run(words, { input: true, answers: [""] })).code).toBe(1);
    expect(await records.object(CONFIG_MAPS, `service-${id}`)).toBeDefined();

    expect(await records.run(`${words} --yes`)).toEqual({
      code: 0,
      out: "",
      err: `Service ${id} is deleted; its pipes, and its PipeScaling, stay as they are.\n`,
    });
    expect(await records.object(CONFIG_MAPS, `service-${id}`)).toBeUndefined();
    expect(await records.object(CONFIG_MAPS, `backup-${id}`)).toBeUndefined();
    expect(await records.object(PIPE_SCALINGS, id, records.environment.pipes)).toEqual(scaling);
    expect((await records.run(`${words} --yes`)).code).toBe(1);
  });

  it("deletes a malformed record", async () => {
    const malformed = serviceRecord({ organizationId: organization, namespace: "Not a namespace" });
    await records.environment.addRecord(malformed);
    const id = malformed.metadata.name.slice("service-".length);
    expect((await records.run(`admin service delete ${id} --yes`)).code).toBe(0);
    expect(await records.object(CONFIG_MAPS, malformed.metadata.name)).toBeUndefined();
  });
});
