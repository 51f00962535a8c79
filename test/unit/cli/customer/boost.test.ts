import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../../../src/all-commands.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import {
  done,
  type FakeResponse,
  REQUEST_ID,
  type ReceivedRequest,
  refused,
} from "../../../support/fakes/fake-http-server.ts";
import { fakeIo } from "../../../support/fakes/fake-io.ts";
import { accessTo, apiWith, type Operations, OWN, SCALING, SERVICE, writesTo } from "./fake-api.ts";

const HOUR_MS = 3_600_000;
const UNTIL = "2026-01-31T20:00:00.000Z";
const SIXTEEN = { replicaCpuMillicores: 16_000, replicaMemoryGb: 64 };

const BOOSTED = {
  state: "scaled",
  reason: "Scaled",
  message: "Every pipe runs the size.",
  desired: { ...SIXTEEN, source: "Boost" },
  boost: { ...SIXTEEN, until: UNTIL, remainingSeconds: 7200 },
  effective: SIXTEEN,
  pipes: { total: 3, updated: 3 },
  failures: [],
  requestId: REQUEST_ID,
};

async function run(words: string, operations: Operations = {}, env = {}) {
  const api = await apiWith(operations);
  const io = fakeIo({ env: { ...accessTo(api), ...env } });
  const code = await runProgram(COMMANDS, `scaling boost ${words}`.split(" "), io);
  return { code, ...io.written, writes: writesTo(api) };
}

/** Returns the boost that it gets. */
function echo({ body }: ReceivedRequest): FakeResponse {
  return done(body);
}

describe("scaling boost", () => {
  test("starts a boost that ends after a time, and says how to watch it", async () => {
    const startedAt = Date.now();
    const { code, out, err, writes } = await run(`${SERVICE} --cores 16 --for 8h`, {
      [`PUT ${SCALING}/boost`]: echo,
    });
    expect(code).toBe(0);
    expect(writes).toMatchObject([{ method: "PUT", path: `${SCALING}/boost`, body: SIXTEEN }]);
    const { until } = Object(writes[0]?.body);
    expect(Date.parse(until)).toBeGreaterThanOrEqual(startedAt + 8 * HOUR_MS);
    expect(Date.parse(until)).toBeLessThanOrEqual(Date.now() + 8 * HOUR_MS);
    expect(out).toContain(`ACCEPTED    16 cpu / 64 Gi until ${until}`);
    expect(err).toContain(`To watch it: pipe-scaling scaling get ${SERVICE} --watch`);
  });

  test.each([-1, 1])(
    "starts a boost of the whole duration, although the clock of this machine is %i h off",
    async (hours) => {
      const apiNow = Math.floor(Date.now() / 1000) * 1000 - hours * HOUR_MS;
      const { writes } = await run(`${SERVICE} --cores 16 --for 30m`, {
        "GET /v1/organizations": {
          ...done([OWN]),
          headers: { Date: new Date(apiNow).toUTCString() },
        },
        [`PUT ${SCALING}/boost`]: echo,
      });
      const { until } = Object(writes[0]?.body);
      expect(Math.abs(Date.parse(until) - apiNow - HOUR_MS / 2)).toBeLessThan(60_000);
    },
  );

  test("starts a boost that ends at a time, and watches it", async () => {
    const { code, out, err, writes } = await run(`${SERVICE} --memory-gb 64 --until ${UNTIL} --watch`, {
      [`PUT ${SCALING}/boost`]: echo,
      [`GET ${SCALING}/progress`]: done(BOOSTED),
    });
    expect(writes).toMatchObject([{ body: { ...SIXTEEN, until: UNTIL } }]);
    expect(err).toContain(`Accepted: 16 cpu / 64 Gi until ${UNTIL} (request ${REQUEST_ID}).`);
    expect(out).toContain(`boost until ${UNTIL}`);
    expect(out).toContain("scaled, 3/3 pipes");
    expect(code).toBe(0);
  });

  test("prints the boost as data", async () => {
    const { out } = await run(`${SERVICE} --cores 16 --until ${UNTIL} --output json`, {
      [`PUT ${SCALING}/boost`]: echo,
    });
    expect(JSON.parse(out)).toEqual({ service: SERVICE, ...SIXTEEN, until: UNTIL, requestId: REQUEST_ID });
  });

  test("ends a boost", async () => {
    const { code, out, writes } = await run(`${SERVICE} --end`, {
      [`DELETE ${SCALING}/boost`]: { body: { requestId: REQUEST_ID, status: 200 } },
    });
    expect({ code, writes }).toMatchObject({ code: 0, writes: [{ method: "DELETE" }] });
    expect(out).toContain("ACCEPTED    the end of the boost");
  });

  test("explains that there is no boost to end", async () => {
    const { code, err } = await run(`${SERVICE} --end`, {
      [`DELETE ${SCALING}/boost`]: refused(404, "The service has no boost, or its boost has ended."),
    });
    expect(code).toBe(1);
    expect(err).toContain(
      "The service has no boost, or its boost has ended. `pipe-scaling scaling get SERVICE` shows the boost of a service",
    );
  });

  test("shows the boost in effect with the time left, or how to start one", async () => {
    const boosted = { [`GET ${SCALING}/progress`]: done(BOOSTED) };
    expect(await run(SERVICE, boosted)).toMatchObject({
      code: 0,
      err: "",
      writes: [],
      out: `SERVICE  ${SERVICE}\nBOOST    16 cpu / 64 Gi until ${UNTIL} (2 h left)\n`,
    });
    const json = await run(`${SERVICE} --output json`, boosted);
    expect(JSON.parse(json.out)).toEqual({ service: SERVICE, boost: BOOSTED.boost });
    const { boost: _, ...none } = BOOSTED;
    expect(await run(SERVICE, { [`GET ${SCALING}/progress`]: done(none) })).toMatchObject({
      code: 0,
      out: "",
      err: `No boost is in effect. To start one: pipe-scaling scaling boost ${SERVICE} --cores 16 --for 8h\n`,
    });
  });

  test("shows and ends a boost, although a size for another command is in the environment", async () => {
    const env = { PIPE_SCALING_CORES: "4", PIPE_SCALING_MEMORY_GB: "16" };
    const operations = {
      [`GET ${SCALING}/progress`]: done(BOOSTED),
      [`DELETE ${SCALING}/boost`]: { body: { requestId: REQUEST_ID, status: 200 } },
    };
    expect(await run(SERVICE, operations, env)).toMatchObject({ code: 0, writes: [] });
    expect(await run(`${SERVICE} --end`, operations, env)).toMatchObject({ code: 0 });
  });

  test.each([
    ["--cores 16", "Specify the end of the boost with --for, such as --for 8h, or with --until."],
    ["--for 8h", "Specify a size with --cores or --memory-gb."],
    [`--cores 16 --for 8h --until ${UNTIL}`, "Specify only one of the two"],
    ["--cores 16 --memory-gb 32 --for 8h", "--cores 16 implies --memory-gb 64"],
    ["--cores 129 --for 8h", "it must be a whole number from 1 to 128"],
    ["--cores 16 --for tomorrow", "it must be a duration from 1s to 8760h"],
    ["--cores 16 --until tomorrow", "it must be a date-time with seconds and a time zone"],
    ["--end --cores 16", "--end ends the boost now"],
    ["--watch", "To follow any rescale, use `scaling get --watch`"],
    ["--end --timeout 5m", "--timeout needs --watch"],
  ])("rejects %s, and says what is allowed", async (words, sentence) => {
    const { code, err, writes } = await run(`${SERVICE} ${words}`);
    expect({ code, writes }).toEqual({ code: 2, writes: [] });
    expect(err).toContain(sentence);
  });
});
