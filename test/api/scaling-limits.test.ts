import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import type * as z from "zod";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { pipeScalingLimits } from "../../src/api/resources/pipe-scaling/limits.ts";
import { IGNORE_WINDOW_ANNOTATION } from "../../src/crd/names.ts";
import type { RolloutWindow } from "../../src/domain/rollout-window.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { objectPath } from "../../src/kube/paths.ts";
import { formatRolloutWindow } from "../../src/records/rollout-window.ts";
import { serviceRecord } from "../support/fixtures/records.ts";
import { PIPE_SCALINGS } from "./environment.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";
import { fieldsOf } from "./statuses.ts";

const HOUR_MS = 3_600_000;

const environment = setUpEnvironment("scaling-limits");
const api = setUpApi(environment, {
  tiers: new Map([
    ["small", { name: "small", defaultSize: sizeOfCores(2), maximumSize: sizeOfCores(8) }],
    ["scale", { name: "scale", defaultSize: sizeOfCores(2), maximumSize: sizeOfCores(24) }],
  ]),
});

interface Place {
  readonly path: string;
  readonly authorization: string;
  readonly service: string;
}

interface Windows {
  readonly ofOrganization?: RolloutWindow;
  readonly ofService?: RolloutWindow;
}

/** Creates an organization of the tier `small` with a service and its PipeScaling. */
async function place({ ofOrganization, ofService }: Windows = {}, roles = ["developer"]): Promise<Place> {
  const organizationId = await environment.addOrganization(
    { tier: "small" },
    ofOrganization && { rolloutWindow: formatRolloutWindow(ofOrganization) },
  );
  const record = serviceRecord({ organizationId, namespace: environment.pipes, rolloutWindow: ofService });
  await environment.addRecord(record);
  const service = record.metadata.name.slice("service-".length);
  await environment.addScaling(service, {});
  const { authorization } = await environment.addKey({ organizationId, roles });
  await api.waitForOrganization(authorization);
  const path = `/v1/organizations/${organizationId}/services/${service}/pipesCdcScaling`;
  return { path, authorization, service };
}

type Limits = z.infer<typeof pipeScalingLimits>;

/** Waits until the API sees the objects, and the limits satisfy the condition. */
function limitsOnce({ path, authorization }: Place, seen: (limits: Limits) => boolean = () => true) {
  return waitFor(
    async () => {
      const { status, body } = await api.send({ path: `${path}/limits`, authorization });
      const limits = status === 200 && successEnvelope(pipeScalingLimits).parse(body).result;
      return limits && seen(limits) && limits;
    },
    { what: "the limits" },
  );
}

function change({ service }: Place, body: object): Promise<unknown> {
  const path = objectPath(PIPE_SCALINGS, environment.pipes, service);
  return environment.admin.json({ method: "PATCH", path, patchType: "application/merge-patch+json", body });
}

/** The window is closed now, and opens in two hours or a little later. */
function closedWindow(appliesTo: RolloutWindow["appliesTo"]): RolloutWindow {
  const opensAt = new Date(Date.now() + 2 * HOUR_MS);
  const schedule = `${opensAt.getUTCMinutes()} ${opensAt.getUTCHours()} * * *`;
  return { schedule, durationMs: HOUR_MS, timeZone: "UTC", appliesTo };
}

const OPEN_WINDOW: RolloutWindow = {
  schedule: "* * * * *",
  durationMs: HOUR_MS,
  timeZone: "UTC",
  appliesTo: "restarts",
};

describe("GET pipesCdcScaling/limits", () => {
  it("returns the sizes that the tier allows to any key that may read", async () => {
    const expected = {
      minimum: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
      maximum: { replicaCpuMillicores: 8000, replicaMemoryGb: 32 },
      step: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
      default: { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
      suspended: false,
    };
    for (const role of ["developer", "admin"]) {
      expect(await limitsOnce(await place({}, [role]))).toEqual(expected);
    }
  });

  it("returns the largest size that a PATCH accepts", async () => {
    const admin = await place({}, ["admin"]);
    const { maximum, step } = await limitsOnce(admin);
    const patch = (body: object) =>
      api.send({
        method: "PATCH",
        path: admin.path,
        authorization: admin.authorization,
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
    const larger = sizeOfCores((maximum.replicaCpuMillicores + step.replicaCpuMillicores) / 1000);
    expect((await patch(fieldsOf(larger))).status).toBe(400);
    expect((await patch(maximum)).status).toBe(200);
  });

  it("shows that scaling is suspended, and that it is resumed", async () => {
    const suspended = await place();
    await change(suspended, { spec: { suspend: true } });
    expect(await limitsOnce(suspended, (limits) => limits.suspended)).toMatchObject({ suspended: true });
    await change(suspended, { spec: { suspend: null } });
    expect(await limitsOnce(suspended, (limits) => !limits.suspended)).toMatchObject({ suspended: false });
  });

  it("returns the time at which a closed window opens, and the resizes that wait for it", async () => {
    const { rolloutWindow } = await limitsOnce(await place({ ofService: closedWindow("all") }));
    expect(rolloutWindow).toMatchObject({ open: false, appliesTo: "all" });
    const opensInMs = Date.parse(rolloutWindow?.opensAt ?? "") - Date.now();
    expect(opensInMs).toBeGreaterThan(HOUR_MS);
    expect(opensInMs).toBeLessThanOrEqual(2 * HOUR_MS);
  });

  it("returns the window of the organization only for a service without its own", async () => {
    const ofOrganization = closedWindow("restarts");
    expect(await limitsOnce(await place({ ofOrganization }))).toMatchObject({
      rolloutWindow: { open: false, appliesTo: "restarts" },
    });
    const { rolloutWindow } = await limitsOnce(await place({ ofOrganization, ofService: OPEN_WINDOW }));
    expect(rolloutWindow).toEqual({ open: true, appliesTo: "restarts" });
  });

  it("shows a closed window as open while somebody has opened it early", async () => {
    const early = await place({ ofService: closedWindow("restarts") });
    const until = (ms: number) => ({
      metadata: { annotations: { [IGNORE_WINDOW_ANNOTATION]: new Date(Date.now() + ms).toISOString() } },
    });
    await change(early, until(HOUR_MS));
    expect(await limitsOnce(early, ({ rolloutWindow }) => rolloutWindow?.open === true)).toMatchObject({
      rolloutWindow: { open: true, appliesTo: "restarts" },
    });
    await change(early, until(-HOUR_MS));
    expect(await limitsOnce(early, ({ rolloutWindow }) => rolloutWindow?.open === false)).toHaveProperty(
      "rolloutWindow.opensAt",
    );
  });

  it("gets 400 for a service without a pipe, like a PATCH", async () => {
    const organizationId = await environment.addOrganization();
    const service = await environment.addService(organizationId);
    const { authorization } = await environment.addKey({ organizationId });
    await api.waitForOrganization(authorization);
    const path = `/v1/organizations/${organizationId}/services/${service}/pipesCdcScaling/limits`;
    const { status, body } = await waitFor(
      async () => {
        const response = await api.send({ path, authorization });
        return response.status !== 404 && response;
      },
      { what: "the API to see the service" },
    );
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/No database pipe/) },
    });
  });
});
