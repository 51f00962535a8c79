import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { COMMANDS } from "../../../../src/all-commands.ts";
import { changeProfiles, profilePath } from "../../../../src/cli/customer/profile-file.ts";
import { Interruption } from "../../../../src/cli/io.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import {
  done,
  type FakeHttpServer,
  REQUEST_ID,
  refused,
  startFakeHttpServer,
} from "../../../support/fakes/fake-http-server.ts";
import { fakeIo } from "../../../support/fakes/fake-io.ts";
import { basic } from "../../../support/fixtures/records.ts";
import { accessTo, apiWith, BASE, ORGANIZATION, OWN, SCALING, SERVICE, writesTo } from "./fake-api.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "pipe-scaling-http-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
});

interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The lines typed at the terminal. If undefined, there is no terminal. */
  readonly answers?: readonly string[];
  readonly signal?: AbortSignal;
}

async function run(
  api: FakeHttpServer | undefined,
  words: string,
  { env, answers, signal }: RunOptions = {},
) {
  const io = fakeIo({
    env: { XDG_CONFIG_HOME: home, ...(api ? accessTo(api) : {}), ...env },
    ...(answers ? { answers, input: true } : {}),
    ...(signal ? { signal } : {}),
  });
  const code = await runProgram(COMMANDS, words.split(" "), io);
  return { code, ...io.written };
}

describe("organizations", () => {
  test("shows the key's organization, authenticated with HTTP Basic", async () => {
    const api = await apiWith();
    expect(await run(api, "organizations")).toEqual({
      code: 0,
      out: `ID                                    NAME  CREATED AT\n${ORGANIZATION}  Acme  2026-01-31T12:00:00.000Z\n`,
      err: "",
    });
    expect(api.requests).toMatchObject([
      { path: "/v1/organizations", authorization: basic("key1", "tops3cret") },
    ]);
    expect(JSON.parse((await run(api, "organizations --output json")).out)).toEqual([OWN]);
    expect((await run(api, "organizations --output yaml")).out).toContain(
      `- id: ${ORGANIZATION}\n  name: Acme\n`,
    );
  });
});

describe("services", () => {
  const SERVICES = [
    { id: ORGANIZATION, name: "Billing" },
    { id: SERVICE, name: "orders" },
  ];
  const PATH = `${BASE}/services`;

  test("lists the services of the key's organization", async () => {
    const api = await apiWith({ [`GET ${PATH}`]: done(SERVICES) });
    expect(await run(api, "services")).toEqual({
      code: 0,
      out: `ID                                    NAME\n${ORGANIZATION}  Billing\n${SERVICE}  orders\n`,
      err: "",
    });
    const json = await run(api, `services --output json`);
    expect(JSON.parse(json.out)).toEqual(SERVICES);
    expect(api.requests.map(({ path }) => path)).toEqual([
      "/v1/organizations",
      PATH,
      "/v1/organizations",
      PATH,
    ]);
    expect((await run(api, "services --output yaml")).out).toContain(`- id: ${SERVICE}\n  name: orders\n`);
  });

  test("includes fields of later API versions in data output", async () => {
    const later = [{ id: SERVICE, name: "orders", region: "eu" }];
    const api = await apiWith({ [`GET ${PATH}`]: done(later) });
    expect(JSON.parse((await run(api, "services --output json")).out)).toEqual(later);
  });

  test("names the command that shows the key's organization after a 404", async () => {
    const api = await apiWith({ [`GET ${PATH}`]: refused(404, "There is no such organization.") });
    const { code, out, err } = await run(api, "services");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain("`pipe-scaling organizations` shows the organization of the key");
  });
});

describe("keys", () => {
  const KEY = {
    id: SERVICE,
    name: "ci",
    state: "enabled",
    roles: ["admin", "developer"],
    createdAt: "2026-01-31T12:00:00.000Z",
    keySuffix: "x7Qd",
    ipAccessList: [{ description: "office", source: "203.0.113.0/24" }],
  };

  test("lists the keys of the key's organization", async () => {
    const api = await apiWith({ [`GET ${BASE}/keys`]: done([KEY]) });
    const { out } = await run(api, "keys");
    expect(out).toBe(
      "NAME  KEY SUFFIX  STATE    ROLES            CREATED AT                EXPIRE AT  USED AT  ALLOW FROM\n" +
        "ci    x7Qd        enabled  admin,developer  2026-01-31T12:00:00.000Z  -          -        203.0.113.0/24\n",
    );
    expect(JSON.parse((await run(api, `keys --output json`)).out)).toEqual([KEY]);
    expect(api.requests.map(({ path }) => path)).toEqual([
      "/v1/organizations",
      `${BASE}/keys`,
      "/v1/organizations",
      `${BASE}/keys`,
    ]);
  });

  test("fails if the key's organization has no record", async () => {
    const api = await apiWith({ "GET /v1/organizations": done([]) });
    const { code, err } = await run(api, "keys");
    expect(err).toContain(
      `${api.url} has no record of the organization of the key that ends in key1: ask its operator.`,
    );
    expect(code).toBe(1);
  });
});

describe("backup", () => {
  const path = `${BASE}/services/${SERVICE}/backupConfiguration`;
  const settings = { backupPeriodInHours: 24, backupRetentionPeriodInHours: 72, backupStartTime: "2:00" };

  test("get prints the settings", async () => {
    const api = await apiWith({ [`GET ${path}`]: done(settings) });
    expect((await run(api, `backup get ${SERVICE.toUpperCase()}`)).out).toBe(
      "BACKUP PERIOD IN HOURS            24\nBACKUP RETENTION PERIOD IN HOURS  72\nBACKUP START TIME                 2:00\n",
    );
  });

  test.each([
    ["--period 12", { backupPeriodInHours: 12 }],
    ["--retention 72 --start-time 2:00", { backupRetentionPeriodInHours: 72, backupStartTime: "2:00" }],
    [
      "--period default --retention default --start-time default",
      { backupPeriodInHours: null, backupRetentionPeriodInHours: null, backupStartTime: null },
    ],
  ])("set %s sends only these fields", async (flags, body) => {
    const api = await apiWith({ [`PATCH ${path}`]: done(settings) });
    const { code, out } = await run(api, `backup set ${SERVICE} ${flags} --output json`);
    expect([code, JSON.parse(out)]).toEqual([0, settings]);
    expect(writesTo(api)).toMatchObject([{ path, body, contentType: "application/json; charset=utf-8" }]);
  });

  test("set changes nothing because of a variable that another command needed", async () => {
    const api = await apiWith({ [`PATCH ${path}`]: done(settings) });
    const env = { PIPE_SCALING_RETENTION: "72", PIPE_SCALING_START_TIME: "2:00", PIPE_SCALING_PERIOD: "6" };
    expect(await run(api, `backup set ${SERVICE} --period 24`, { env })).toMatchObject({ code: 0 });
    expect(writesTo(api).map(({ body }) => body)).toEqual([{ backupPeriodInHours: 24 }]);
  });

  test.each([
    ["", "Nothing to change. Specify --period, --retention or --start-time."],
    ["--period 7", 'is "7", but it must be default, 6, 8, 12, 16, 20, 24, 36 or 48.'],
    ["--retention 25", "but it must be a number from 24 to 1080, a multiple of 24, or default."],
    ["--start-time 2:30", "but it must be a full hour in UTC, H:00 or HH:00, or default."],
  ])("set %s fails without sending a request", async (flags, sentence) => {
    const api = await apiWith();
    const { code, err } = await run(api, `backup set ${SERVICE} ${flags}`.trim());
    expect(err).toContain(sentence);
    expect([code, api.requests]).toEqual([2, []]);
  });
});

describe("members list", () => {
  const MEMBERS = [
    {
      userId: "u-1",
      name: "Ada",
      email: "ada@example.com",
      role: "admin",
      joinedAt: "2026-01-31T12:00:00.000Z",
    },
  ];

  test("lists the members of the key's organization with the IDs that members remove takes", async () => {
    const api = await apiWith({ [`GET ${BASE}/members`]: done(MEMBERS) });
    expect((await run(api, "members list")).out).toBe(
      "USER ID  NAME  EMAIL            ROLE   JOINED AT\n" +
        "u-1      Ada   ada@example.com  admin  2026-01-31T12:00:00.000Z\n",
    );
    expect(JSON.parse((await run(api, "members list --output json")).out)).toEqual(MEMBERS);
  });
});

describe("members remove", () => {
  const path = `${BASE}/members/a%2Fb%20%C3%A9`;
  const removed = { [`DELETE ${path}`]: { body: { requestId: REQUEST_ID, status: 200 } } };
  const words = ["members", "remove", "a/b é"];

  async function remove(api: FakeHttpServer, answers?: readonly string[], ...flags: string[]) {
    const env = {
      PIPE_SCALING_API_URL: api.url,
      PIPE_SCALING_KEY_ID: "key1",
      PIPE_SCALING_KEY_SECRET: "tops3cret",
    };
    const io = fakeIo({ env, ...(answers ? { answers, input: true } : {}) });
    return { code: await runProgram(COMMANDS, [...words, ...flags], io), ...io.written };
  }

  test("asks for confirmation, and prints the removed member", async () => {
    const api = await apiWith(removed);
    expect(await remove(api, ["y"])).toEqual({
      code: 0,
      out: "",
      err: `Remove the user "a/b é" from the organization Acme (${ORGANIZATION})? [y/N] Removed the user "a/b é" (request ${REQUEST_ID}).\n`,
    });
    expect(writesTo(api)).toMatchObject([
      { method: "DELETE", path, body: undefined, contentType: undefined },
    ]);
  });

  test("does nothing without confirmation", async () => {
    const api = await apiWith(removed);
    expect(await remove(api, ["n"])).toMatchObject({ code: 1 });
    expect(await remove(api)).toMatchObject({
      code: 2,
      err: expect.stringContaining("Confirm with --yes"),
    });
    expect(writesTo(api)).toEqual([]);
    expect(await remove(api, undefined, "--yes")).toMatchObject({ code: 0 });
  });
});

describe("scaling set", () => {
  const accepted = { [`PATCH ${SCALING}`]: done({ replicaCpuMillicores: 4000, replicaMemoryGb: 16 }) };

  test.each(["--cores 4", "--memory-gb 16", "--cores 4 --memory-gb 16"])(
    "%s requests CPU and memory",
    async (flags) => {
      const api = await apiWith(accepted);
      const { code, out, err } = await run(api, `scaling set ${SERVICE} ${flags}`);
      expect({ code, out }).toEqual({
        code: 0,
        out: `SERVICE     ${SERVICE}\nACCEPTED    4 cpu / 16 Gi\nREQUEST ID  ${REQUEST_ID}\n`,
      });
      expect(err).toContain(`pipe-scaling scaling get ${SERVICE} --watch`);
      expect(writesTo(api)).toMatchObject([{ body: { replicaCpuMillicores: 4000, replicaMemoryGb: 16 } }]);
    },
  );

  test("prints the accepted size as data", async () => {
    const { out } = await run(await apiWith(accepted), `scaling set ${SERVICE} --cores 4 --output json`);
    expect(JSON.parse(out)).toEqual({
      service: SERVICE,
      replicaCpuMillicores: 4000,
      replicaMemoryGb: 16,
      requestId: REQUEST_ID,
    });
  });

  test.each([
    [`${SERVICE}`, "Specify a size with --cores or --memory-gb."],
    [`${SERVICE} --cores 129`, 'is "129", but it must be a whole number from 1 to 128.'],
    [`${SERVICE} --cores 0.5`, "but it must be a whole number from 1 to 128."],
    [`${SERVICE} --memory-gb 6`, "but it must be a number from 4 to 512, a multiple of 4."],
    [
      `${SERVICE} --cores 4 --memory-gb 8`,
      "--cores 4 implies --memory-gb 16, not 8. Specify only one of the two.",
    ],
    [
      "orders --cores 4",
      '<service> is "orders", but it must be the UUID of a service (see `pipe-scaling services`).',
    ],
    ["--cores 4", "<service> is missing: ID of the service (see `pipe-scaling services`)."],
    [`${SERVICE} --cores 4 --timeout 5m`, "--timeout needs --watch."],
    [`${SERVICE} --cores 4 --key-secret x`, "Unknown option '--key-secret'"],
  ])("%s fails with exit code 2 without sending a request", async (words, sentence) => {
    const api = await apiWith(accepted);
    const { code, err } = await run(api, `scaling set ${words}`);
    expect(err).toContain(sentence);
    expect([code, api.requests]).toEqual([2, []]);
  });

  test.each([
    [400, "The size is above what the organization's tier allows."],
    [409, "Scaling of this service is suspended."],
    [403, "The roles of this key do not allow this operation: it needs the role admin."],
    [404, "There is no such service in this organization."],
  ])("ends with exit code 1 and the API's message after the response %i", async (status, message) => {
    const api = await apiWith({ [`PATCH ${SCALING}`]: refused(status, message) });
    const { code, out, err } = await run(api, `scaling set ${SERVICE} --cores 4`);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(message);
    expect(err).toContain(`(status ${status}, request ${REQUEST_ID})`);
  });
});

const PROGRESS = {
  state: "propagating",
  reason: "Progressing",
  message: "The size is being applied to the pipes, a few at a time.",
  desired: { replicaCpuMillicores: 4000, replicaMemoryGb: 16, source: "Spec" },
  effective: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
  pipes: { total: 3, updated: 1 },
  failures: [],
  requestId: REQUEST_ID,
  startedAt: "2026-01-31T12:00:00.000Z",
};
const FAILED = {
  ...PROGRESS,
  state: "failed",
  reason: "Refused",
  message: "This size is not allowed for the pipe.",
  failures: [
    {
      pipe: "orders",
      reason: "Refused",
      message: "This size is not allowed for the pipe.",
      attempts: 2,
      at: "2026-01-31T12:00:00.000Z",
      nextRetryAt: "2026-01-31T12:05:00.000Z",
    },
  ],
};

describe("scaling get", () => {
  test("shows the progress", async () => {
    const api = await apiWith({ [`GET ${SCALING}/progress`]: done(PROGRESS) });
    expect(await run(api, `scaling get ${SERVICE}`)).toEqual({
      code: 0,
      err: "",
      out: [
        `SERVICE       ${SERVICE}`,
        "STATE         propagating",
        "REASON        Progressing",
        "MESSAGE       The size is being applied to the pipes, a few at a time.",
        "DESIRED       4 cpu / 16 Gi",
        "SOURCE        Spec",
        "EFFECTIVE     1 cpu / 4 Gi",
        "PIPES         1/3",
        `REQUEST ID    ${REQUEST_ID}`,
        "STARTED AT    2026-01-31T12:00:00.000Z",
        "COMPLETED AT  -",
        "",
      ].join("\n"),
    });
  });

  test("names the failure and the next attempt, and ends with exit code 3", async () => {
    const api = await apiWith({ [`GET ${SCALING}/progress`]: done(FAILED) });
    const { code, out } = await run(api, `scaling get ${SERVICE}`);
    expect(out).toContain(
      "\n\nPIPE    REASON   ATTEMPTS  NEXT RETRY AT             MESSAGE\norders  Refused  2         2026-01-31T12:05:00.000Z  This size is not allowed for the pipe.\n",
    );
    expect(code).toBe(3);
    const json = await run(api, `scaling get ${SERVICE} --output json`);
    expect([json.code, JSON.parse(json.out)]).toEqual([3, { service: SERVICE, ...FAILED }]);
  });
});

describe("scaling limits", () => {
  const LIMITS = {
    minimum: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
    maximum: { replicaCpuMillicores: 16_000, replicaMemoryGb: 64 },
    step: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
    default: { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
    suspended: false,
  };
  const SIZES = [
    `SERVICE    ${SERVICE}`,
    "MINIMUM    1 cpu / 4 Gi",
    "MAXIMUM    16 cpu / 64 Gi",
    "STEP       1 cpu / 4 Gi",
    "DEFAULT    2 cpu / 8 Gi",
    "SUSPENDED  false",
    "",
  ].join("\n");

  test.each([LIMITS, { ...LIMITS, rolloutWindow: { open: true, appliesTo: "restarts" } }])(
    "shows the sizes of the tier while nothing waits for a window",
    async (limits) => {
      const api = await apiWith({ [`GET ${SCALING}/limits`]: done(limits) });
      expect(await run(api, `scaling limits ${SERVICE}`)).toEqual({ code: 0, err: "", out: SIZES });
    },
  );

  test("shows which resizes wait for a closed window, and until when", async () => {
    const rolloutWindow = { open: false, appliesTo: "restarts", opensAt: "2026-01-31T02:00:00.000Z" };
    const api = await apiWith({ [`GET ${SCALING}/limits`]: done({ ...LIMITS, rolloutWindow }) });
    const { out } = await run(api, `scaling limits ${SERVICE}`);
    expect(out).toMatch(/RESIZES THAT WAIT +restarts\nUNTIL +2026-01-31T02:00:00\.000Z\n$/);
    const json = await run(api, `scaling limits ${SERVICE} --output json`);
    expect(JSON.parse(json.out)).toEqual({ service: SERVICE, ...LIMITS, rolloutWindow });
  });
});

describe("scaling history", () => {
  const HISTORY = [
    {
      replicaCpuMillicores: 4000,
      replicaMemoryGb: 16,
      source: "Spec",
      result: "propagating",
      requestId: REQUEST_ID,
      startedAt: "2026-02-01T12:00:00.000Z",
    },
    {
      replicaCpuMillicores: 2000,
      replicaMemoryGb: 8,
      source: "TierDefault",
      result: "scaled",
      startedAt: "2026-01-31T12:00:00.000Z",
      completedAt: "2026-01-31T12:04:00.000Z",
    },
  ];

  test("lists the sizes in the order of the API", async () => {
    const api = await apiWith({ [`GET ${SCALING}/history`]: done(HISTORY) });
    const { code, out } = await run(api, `scaling history ${SERVICE}`);
    expect(out.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["SIZE", "SOURCE", "RESULT", "STARTED AT", "COMPLETED AT", "REQUEST ID"],
      ["4 cpu / 16 Gi", "Spec", "propagating", "2026-02-01T12:00:00.000Z", "-", REQUEST_ID],
      ["2 cpu / 8 Gi", "TierDefault", "scaled", "2026-01-31T12:00:00.000Z", "2026-01-31T12:04:00.000Z", "-"],
      [""],
    ]);
    expect(code).toBe(0);
    const json = await run(api, `scaling history ${SERVICE} --output json`);
    expect(JSON.parse(json.out)).toEqual(HISTORY);
  });
});

describe("--watch", () => {
  const outcome = (progress: object) => ({
    [`PATCH ${SCALING}`]: done({ replicaCpuMillicores: 4000, replicaMemoryGb: 16 }),
    [`GET ${SCALING}/progress`]: done(progress),
  });
  const SCALED = { ...PROGRESS, state: "scaled", reason: "Scaled", message: "Every pipe runs the size." };

  test.each([
    ["scaled", SCALED, 0],
    ["failed", FAILED, 3],
    ["suspended", { ...PROGRESS, state: "suspended", reason: "Suspended", message: "It is suspended." }, 3],
  ])("ends when the rescale is %s", async (state, progress, expected) => {
    const api = await apiWith(outcome(progress));
    for (const words of [`scaling set ${SERVICE} --cores 4 --watch`, `scaling get ${SERVICE} --watch`]) {
      const { code, out } = await run(api, words);
      expect(out).toContain(`${state}, 1/3 pipes: ${progress.reason}: ${progress.message}`);
      expect(code).toBe(expected);
    }
  });

  test("compares times with the clock of the API, also if that of this machine is wrong", async () => {
    const atTwoMinutes = { Date: "Sat, 31 Jan 2026 12:02:00 GMT" };
    const api = await apiWith({ [`GET ${SCALING}/progress`]: done(FAILED, atTwoMinutes) });
    const { out } = await run(api, `scaling get ${SERVICE} --watch`);
    expect(out).toContain("The next attempt is in 3 min.");
  });

  test("prints only the outcome as data", async () => {
    const api = await apiWith(outcome(SCALED));
    const { out, err } = await run(api, `scaling set ${SERVICE} --cores 4 --watch --output json`);
    expect(JSON.parse(out)).toEqual({ service: SERVICE, ...SCALED });
    expect(err).toContain(`Accepted: 4 cpu / 16 Gi (request ${REQUEST_ID}).\n`);
    expect(err).toContain("scaled, 1/3 pipes: Scaled");
  });

  test("ends with exit code 4 after its timeout and with 130 after Ctrl-C, while the rescale continues", async () => {
    const stop = new AbortController();
    const api = await apiWith({
      ...outcome(PROGRESS),
      [`GET ${SCALING}/progress`]: ({ path }) => {
        setImmediate(() => stop.abort(new Interruption("SIGINT", 130)));
        expect(path).toContain("progress");
        return done(PROGRESS);
      },
    });
    const interrupted = await run(api, `scaling set ${SERVICE} --cores 4 --watch`, { signal: stop.signal });
    expect(interrupted.err).toMatch(
      /The rescale continues\. To watch it: pipe-scaling scaling get .* --watch\nInterrupted\.\n$/,
    );
    expect(interrupted.code).toBe(130);
    const late = await run(await apiWith(outcome(PROGRESS)), `scaling get ${SERVICE} --watch --timeout 1s`);
    expect(late.err).toContain("The watch timed out after 1 s; the rescale continues.");
    expect(late.code).toBe(4);
  });
});

describe("the API URL and the key", () => {
  async function keep(name: string, profile: object): Promise<void> {
    const path = profilePath({ XDG_CONFIG_HOME: home });
    const added = { apiUrl: "", keyId: "kept", keySecret: "ofprofile", ...profile };
    changeProfiles(path, ({ profiles }) => ({ current: name, profiles: { ...profiles, [name]: added } }));
  }

  test("cause exit code 2 and instructions if they are missing", async () => {
    const { code, err } = await run(undefined, "organizations");
    expect(err).toContain(
      "The address of the API or the key is missing: --api-url (or PIPE_SCALING_API_URL), --key-id (or PIPE_SCALING_KEY_ID), PIPE_SCALING_KEY_SECRET. Store them in a profile with `pipe-scaling profile set NAME --api-url URL --key-id ID`, or specify all three.",
    );
    expect(code).toBe(2);
    const { err: partly } = await run(undefined, "organizations --api-url https://x --key-id a");
    expect(partly).toContain("is missing: PIPE_SCALING_KEY_SECRET.");
    const env = { PIPE_SCALING_KEY_SECRET: "s" };
    const { err: nowhere } = await run(undefined, "organizations --key-id a", { env });
    expect(nowhere).toContain("is missing: --api-url (or PIPE_SCALING_API_URL). Store");
    const { err: named } = await run(undefined, "organizations --profile prod");
    expect(named).toContain(
      'There is no profile "prod". Profiles: none. Create it with `pipe-scaling profile set prod',
    );
  });

  test("are taken from the flags, then the environment, then the profile", async () => {
    const [first, second, third] = await Promise.all([apiWith(), apiWith(), apiWith()]);
    await keep("prod", { apiUrl: first.url });
    expect((await run(undefined, "organizations")).code).toBe(0);
    expect(first.requests).toMatchObject([{ authorization: basic("kept", "ofprofile") }]);
    const env = { PIPE_SCALING_API_URL: second.url, PIPE_SCALING_KEY_SECRET: "ofenvironment" };
    expect((await run(undefined, "organizations", { env })).code).toBe(0);
    expect(second.requests).toMatchObject([{ authorization: basic("kept", "ofenvironment") }]);
    const words = `organizations --api-url ${third.url} --key-id flag`;
    expect((await run(undefined, words, { env })).code).toBe(0);
    expect(third.requests).toMatchObject([{ authorization: basic("flag", "ofenvironment") }]);
  });

  test("are taken from another profile if it is named", async () => {
    const api = await apiWith();
    await keep("staging", { apiUrl: api.url });
    await keep("prod", { apiUrl: "http://127.0.0.1:1" });
    expect((await run(undefined, "organizations --profile staging")).code).toBe(0);
    expect((await run(undefined, "organizations", { env: { PIPE_SCALING_PROFILE: "staging" } })).code).toBe(
      0,
    );
    expect((await run(undefined, "organizations")).err).toContain("http://127.0.0.1:1 did not respond");
  });

  test("are selected by the same profile in suggested commands", async () => {
    const size = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };
    const api = await apiWith({
      [`PATCH ${SCALING}`]: done(size),
      [`GET ${BASE}/services/${SERVICE}/backupConfiguration`]: refused(404, "There is no such service."),
    });
    await keep("staging", { apiUrl: api.url });
    await keep("prod", { apiUrl: "http://127.0.0.1:1" });
    const { err } = await run(undefined, `scaling set ${SERVICE} --cores 4 --profile staging`);
    expect(err).toContain(`To watch it: pipe-scaling scaling get ${SERVICE} --watch --profile staging`);
    const { err: unknown } = await run(undefined, `backup get ${SERVICE} --profile staging`);
    expect(unknown).toContain("`pipe-scaling services --profile staging` lists");
  });

  test.each([
    ["the API and the key", "--api-url URL --key-id my$key", {}, " --api-url URL --key-id 'my$key'"],
    ["the API, but not the key of the environment", "--api-url URL", {}, " --api-url URL"],
    [
      "nothing that the environment repeats",
      "--api-url URL --key-id key1",
      { PIPE_SCALING_API_URL: "URL/" },
      "",
    ],
    [
      "the profile, and the API that is not the one of the profile",
      "--profile staging --api-url URL",
      { PIPE_SCALING_KEY_ID: "", PIPE_SCALING_KEY_SECRET: "" },
      " --profile staging --api-url URL",
    ],
    ["a plain HTTP address", "--api-url URL --insecure-http", {}, " --api-url URL --insecure-http"],
  ])("name %s in suggested commands, if flags named it", async (_, flags, variables, printed) => {
    const api = await apiWith({
      [`PATCH ${SCALING}`]: done({ replicaCpuMillicores: 4000, replicaMemoryGb: 16 }),
    });
    const at = (text: string) => text.replace("URL", api.url);
    await keep("staging", { apiUrl: "http://127.0.0.1:1" });
    const known = { PIPE_SCALING_API_URL: "http://127.0.0.1:1", PIPE_SCALING_KEY_ID: "key1" };
    const changes = Object.entries(variables).map(([name, value]) => [name, at(value)]);
    const env = { ...known, PIPE_SCALING_KEY_SECRET: "tops3cret", ...Object.fromEntries(changes) };
    const { err } = await run(undefined, at(`scaling set ${SERVICE} --cores 4 ${flags}`), { env });
    expect(err).toContain(`To watch it: pipe-scaling scaling get ${SERVICE} --watch${at(printed)}\n`);
  });

  test("are not accepted: the command that sets the secret sets the one that was used", async () => {
    const api = await apiWith({ "GET /v1/organizations": refused(401, "Authentication failed.") });
    await keep("prod", { apiUrl: api.url });
    const { err } = await run(undefined, "organizations");
    expect(err).toContain("set another secret with `pipe-scaling profile set prod`.");
    const env = { PIPE_SCALING_KEY_SECRET: "ofenvironment" };
    const { err: exported } = await run(undefined, "organizations", { env });
    expect(exported).toContain("set another secret in PIPE_SCALING_KEY_SECRET.");
  });

  test("never combine the profile's secret with another key ID", async () => {
    const api = await apiWith();
    await keep("prod", { apiUrl: api.url });
    const { code, err } = await run(undefined, "organizations --key-id another");
    expect(err).toContain("The address of the API or the key is missing: PIPE_SCALING_KEY_SECRET.");
    expect([code, api.requests]).toEqual([2, []]);
    expect((await run(undefined, "organizations --key-id kept")).code).toBe(0);
  });

  test("use plain HTTP to another machine only if a flag or the profile allows it", async () => {
    const { code, err } = await run(undefined, "organizations --api-url http://api.invalid --key-id a", {
      env: { PIPE_SCALING_KEY_SECRET: "s" },
    });
    expect(err).toContain("http://api.invalid uses plain HTTP to another machine");
    expect(code).toBe(2);
    await keep("prod", { apiUrl: "http://api.invalid", insecureHttp: "true" });
    expect((await run(undefined, "organizations")).err).toContain("http://api.invalid did not respond");
    expect((await run(undefined, "organizations --api-url http://other.invalid")).err).toContain(
      "http://other.invalid uses plain HTTP to another machine",
    );
  });

  test("are used with the CA certificate from the flag or the profile", async () => {
    const pair = certificatePair("api");
    const api = await startFakeHttpServer(() => done([OWN]), pair);
    const ca = join(home, "ca.pem");
    writeFileSync(ca, pair.cert);
    await keep("prod", { apiUrl: api.url });
    expect((await run(undefined, "organizations")).err).toContain("--ca-file");
    expect((await run(undefined, `organizations --ca-file ${ca}`)).code).toBe(0);
    await keep("prod", { apiUrl: api.url, caFile: ca });
    expect((await run(undefined, "organizations")).code).toBe(0);
    rmSync(ca);
    expect(await run(undefined, "organizations")).toMatchObject({
      code: 1,
      err: expect.stringContaining(`The certificate file ${ca} cannot be used`),
    });
  });

  test("never reveal the secret in a message", async () => {
    const env = { PIPE_SCALING_KEY_SECRET: "tops3cret with blanks" };
    const { code, err } = await run(undefined, "organizations --api-url https://x --key-id a", { env });
    expect(err).toContain("PIPE_SCALING_KEY_SECRET is invalid: it must be printable ASCII characters");
    expect(err).not.toContain("tops3cret");
    expect(code).toBe(2);
  });
});

test("a command waits as long as the API requests, and reports the delay", async () => {
  let requests = 0;
  const api = await apiWith({
    "GET /v1/organizations": () => {
      requests += 1;
      return requests === 1
        ? refused(429, "Too many requests with this key: try again in 1 s.", { "Retry-After": "1" })
        : done([OWN]);
    },
  });
  const { code, err } = await run(api, "organizations");
  expect(err).toBe(
    `Too many requests with this key: try again in 1 s. (status 429, request ${REQUEST_ID}) Trying again in 1 s.\n`,
  );
  expect(code).toBe(0);
});
