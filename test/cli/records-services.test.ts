import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { CONFIG_MAPS } from "../../src/kube/paths.ts";
import { recordLabels } from "../../src/records/labels.ts";
import { PIPE_SCALINGS } from "../api/world.ts";
import { serviceRecord } from "../gen/records.ts";
import { RecordsWorld } from "./records-world.ts";

let records: RecordsWorld;
let organization: string;

beforeAll(async () => {
  records = await RecordsWorld.create("cli-services");
  organization = await records.world.addOrganization();
});

afterAll(() => records?.remove());

const shown = z.looseObject({ id: z.guid() });

describe("service show", () => {
  it("tells the record, and its PipeScaling in short", async () => {
    const id = await records.world.addService(organization);
    const record = { id, organizationId: organization, name: "orders", namespace: records.world.pipes };
    expect(await records.json(shown, `service show ${id}`)).toEqual({
      ...record,
      reason: "NoPipeScaling",
      message: "No database pipe of this service has been seen yet.",
    });

    await records.world.addScaling(id, { suspend: true }, 2);
    expect(await records.json(shown, `service show ${id}`)).toEqual({
      ...record,
      ...{ effective: "2 cpu / 8 Gi", suspended: true, ready: "Unknown" },
      message: "No controller has looked at it yet.",
    });
    expect((await records.run(`service show ${id.toUpperCase()}`)).out).toMatch(
      /\nEFFECTIVE +2 cpu \/ 8 Gi\n/,
    );
  });

  it("of an unknown or a malformed one says what to do", async () => {
    const id = randomUUID();
    expect(await records.run(`service show ${id}`)).toEqual({
      code: 1,
      out: "",
      err: `There is no service with the id ${id} in the namespace ${records.world.records}: see service list.\n`,
    });
    const malformed = serviceRecord({ organizationId: organization, namespace: "Not a namespace" });
    await records.world.addRecord(malformed);
    const { code, err } = await records.run(
      `service show ${malformed.metadata.name.slice("service-".length)}`,
    );
    expect(code).toBe(1);
    expect(err).toContain(`kubectl edit configmap ${malformed.metadata.name}`);
  });
});

describe("service delete", () => {
  it("asks; then the record and its backup settings are gone, and the PipeScaling is as it was", async () => {
    const id = await records.world.addService(organization);
    await records.world.addScaling(id, {}, 2);
    const labels = recordLabels("backup", organization);
    const backup = { kind: "ConfigMap", metadata: { name: `backup-${id}`, labels }, data: {} };
    await records.world.addRecord(backup);
    const scaling = await records.world.scaling(id);
    const words = `service delete ${id}`;

    expect(await records.run(words)).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        `Delete service orders (${id}) with its backup settings? Nobody can be asked`,
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
    expect(await records.object(PIPE_SCALINGS, id, records.world.pipes)).toEqual(scaling);
    expect((await records.run(`${words} --yes`)).code).toBe(1);
  });

  it("takes one that cannot be read", async () => {
    const malformed = serviceRecord({ organizationId: organization, namespace: "Not a namespace" });
    await records.world.addRecord(malformed);
    const id = malformed.metadata.name.slice("service-".length);
    expect((await records.run(`service delete ${id} --yes`)).code).toBe(0);
    expect(await records.object(CONFIG_MAPS, malformed.metadata.name)).toBeUndefined();
  });
});
