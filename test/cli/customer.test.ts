import { spawnSync } from "node:child_process";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { setUpEnvironment } from "../api/fixtures.ts";
import { addMembers, entriesOf } from "../api/member-records.ts";
import { type SpawnedApi, spawnApi } from "../api/spawned-api.ts";
import { refusedAt, reportStatus, sized } from "../api/statuses.ts";
import type { KeyFields, KeyRecord } from "../support/fixtures/records.ts";
import { MAIN, runProgram } from "../support/terminal/program.ts";
import { startInPty } from "../support/terminal/pty.ts";
import { accessTo, emptyHome, run, serviceOf, WAYS } from "./run-command.ts";

/*
 * Runs the commands of a customer with a key against a separate API process, in a pipe and on a
 * terminal.
 */

const environment = setUpEnvironment("cli-http");
let api: SpawnedApi;
let organizationId: string;
let admin: KeyRecord;

beforeAll(async () => {
  organizationId = await environment.addOrganization({ name: "Acme" });
  admin = await environment.addKey({ organizationId, name: "ci" });
  await addMembers(environment, organizationId, { ada: "admin", bob: "developer", "c/d": "developer" });
  api = await spawnApi(environment);
});

afterAll(() => api?.stop());

function newService(cores = 2): Promise<string> {
  const { authorization } = admin;
  return serviceOf(environment, api.send, { organizationId, authorization, cores });
}

/** Creates a key, and waits until the API has it in its cache, even if the key is not valid. */
async function newKey(fields: Partial<KeyFields>): Promise<KeyRecord> {
  const key = await environment.addKey({ organizationId, ...fields });
  const path = `/v1/organizations/${organizationId}/keys`;
  await waitFor(
    async () => (await api.send({ path, authorization: admin.authorization })).text.includes(key.id),
    {
      what: "the API to see the key",
    },
  );
  return key;
}

describe.each(WAYS)("%s", (way) => {
  it("organizations prints the key's organization", async () => {
    const { code, text } = await run(way, "organizations", accessTo(api.url, admin));
    expect(text).toMatch(new RegExp(`^ID +NAME +CREATED AT\\s+${organizationId} +Acme +2026-01-31T12:00:00`));
    expect(code).toBe(0);
  });

  it("keys lists the keys without secrets", async () => {
    const { code, text } = await run(way, "keys", accessTo(api.url, admin));
    expect(text).toMatch(new RegExp(`ci +${admin.keyId.slice(-4)} +enabled +admin`));
    expect(text).not.toContain(admin.keySecret);
    expect(code).toBe(0);
  });

  it("services lists the ID and name of every service, and scaling get accepts these IDs", async () => {
    const service = await newService(1);
    const env = accessTo(api.url, admin);
    const { code, text } = await run(way, "services", env);
    expect(text).toMatch(/^ID +NAME\s/);
    expect(text).toMatch(new RegExp(`^${service} +orders\\s*$`, "m"));
    expect(code).toBe(0);
    const [id = "none"] = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(text) ?? [];
    expect((await run(way, `scaling get ${id}`, env)).text).toContain(id);
  });

  it("members list prints the members with the IDs that members remove takes", async () => {
    const { code, text } = await run(way, "members list", accessTo(api.url, admin));
    expect(text).toMatch(/^USER ID +NAME +EMAIL +ROLE +JOINED AT\s/);
    expect(text).toMatch(/^ada +Ada +ada@example\.com +admin +2026-02-01T00:00:00\.000Z\s*$/m);
    expect(code).toBe(0);
  });

  it("scaling limits prints the sizes of the tier, and scaling history the reported sizes", async () => {
    const service = await newService();
    const startedAt = "2026-01-31T12:00:00Z";
    const entry = { ...sized(4), source: "Spec", result: "Failed", startedAt } as const;
    await reportStatus(environment, service, { ...refusedAt(4, 2), history: [entry] });
    const env = accessTo(api.url, admin);
    const limits = await run(way, `scaling limits ${service}`, env);
    expect(limits.text).toMatch(/MINIMUM +1 cpu \/ 4 Gi\s+MAXIMUM +24 cpu \/ 96 Gi/);
    const history = await run(way, `scaling history ${service}`, env);
    expect(history.text).toMatch(/4 cpu \/ 16 Gi +Spec +failed +2026-01-31T12:00:00\.000Z +- +-/);
    expect([limits.code, history.code]).toEqual([0, 0]);
  });

  it("backup set changes the given fields, and backup get prints them", async () => {
    const service = await newService();
    const env = accessTo(api.url, admin);
    const set = await run(way, `backup set ${service} --period 48 --retention 72 --start-time 2:00`, env);
    expect([set.code, set.text]).toEqual([0, expect.stringMatching(/BACKUP START TIME +2:00/)]);
    expect((await run(way, `backup set ${service} --start-time default`, env)).code).toBe(0);
    const got = await run(way, `backup get ${service} --output yaml`, env);
    expect(got.text).toMatch(/^backupPeriodInHours: 48\s+backupRetentionPeriodInHours: 72$/m);
    expect(got.text).not.toContain("backupStartTime");
  });

  it("scaling set requests a size, and scaling get prints the progress", async () => {
    const service = await newService(1);
    const env = accessTo(api.url, admin);
    const set = await run(way, `scaling set ${service} --cores 4`, env);
    expect([set.code, set.text]).toEqual([0, expect.stringMatching(/ACCEPTED +4 cpu \/ 16 Gi/)]);
    const [, requestId = "none"] = /REQUEST ID +(\S+)/.exec(set.text) ?? [];
    const got = await run(way, `scaling get ${service}`, env);
    expect(got.text).toMatch(/STATE +propagating\s+REASON +Pending/);
    expect(got.text).toMatch(/DESIRED +4 cpu \/ 16 Gi/);
    expect(got.text).toContain(requestId);
    expect(got.code).toBe(0);
    expect((await environment.scaling(service)).spec).toEqual({
      replicaCpuMillicores: 4000,
      replicaMemoryGb: 16,
    });
  });

  it("scaling get names the pipe of a failed rescale, and ends with exit code 3", async () => {
    const service = await newService();
    await reportStatus(environment, service, refusedAt(4, 2));
    const env = accessTo(api.url, admin);
    const { code, text } = await waitFor(
      async () => {
        const got = await run(way, `scaling get ${service}`, env);
        return got.code === 3 && got;
      },
      { what: "the API to report the failure" },
    );
    expect(text).toMatch(
      /orders +Refused +1 +2026-01-31T12:05:00\.000Z +This size is not allowed for the pipe\./,
    );
    expect(text).not.toMatch(/quota|worker-7/);
    expect(code).toBe(3);
  });

  it.each<[string, number, () => Promise<Partial<KeyRecord>>, string]>([
    ["a wrong secret", 401, async () => ({ keySecret: "x".repeat(40) }), "organizations"],
    ["a disabled key", 401, () => newKey({ state: "disabled" }), "organizations"],
    ["an expired key", 401, () => newKey({ expireAt: new Date(0) }), "organizations"],
    [
      "a key that is restricted to another address",
      403,
      () => newKey({ ipAccessList: [{ description: "", source: "192.0.2.1" }] }),
      "organizations",
    ],
    ["a role without permission", 403, () => newKey({ roles: ["developer"] }), "members remove bob --yes"],
    ["an unknown service", 404, async () => ({}), "scaling get 01234567-89ab-4cde-8f01-23456789abcd"],
    [
      "an unknown service",
      404,
      async () => ({}),
      "scaling set 01234567-89ab-4cde-8f01-23456789abcd --cores 4",
    ],
    ["an unknown member", 404, async () => ({}), "members remove unknown --yes"],
    ["the last admin", 400, async () => ({}), "members remove ada --yes"],
  ])(
    "%s causes exit code 1 and a message with the status %i and the request ID",
    async (_, status, key, words) => {
      const env = accessTo(api.url, { ...admin, ...(await key()) });
      const { code, text } = await run(way, words, env);
      expect(text.replaceAll("\n", "")).toMatch(new RegExp(`\\(status ${status}, request [0-9a-f-]{36}\\)$`));
      expect(code).toBe(1);
      expect(await entriesOf(environment, organizationId)).toEqual(expect.arrayContaining(["ada", "bob"]));
    },
  );
});

describe("members remove", () => {
  it("asks for confirmation on a terminal, and removes nothing if it is declined", async () => {
    const env = accessTo(api.url, admin);
    const removal = () => startInPty(process.execPath, [MAIN, "members", "remove", "c/d"], { env });
    const refusing = removal();
    await refusing.waitFor("[y/N]");
    refusing.write("\r");
    expect(await refusing.exitCode).toBe(1);
    expect(refusing.output()).toContain("Nothing was changed.");
    expect(await entriesOf(environment, organizationId)).toContain("c_2Fd");
    const agreeing = removal();
    await agreeing.waitFor(`Remove the user "c/d" from the organization Acme (${organizationId})? [y/N]`);
    agreeing.write("y\r");
    expect(await agreeing.exitCode).toBe(0);
    expect(await entriesOf(environment, organizationId)).not.toContain("c_2Fd");
  });

  it("requires --yes in a pipe", async () => {
    const { code, err } = await runProgram(["members", "remove", "bob"], accessTo(api.url, admin));
    expect(err).toContain("Standard input is not a terminal. Confirm with --yes");
    expect(code).toBe(2);
  });
});

describe("profile set", () => {
  it("reads the secret on a terminal without echo, and every command uses the profile", async () => {
    const env = emptyHome();
    const words = ["profile", "set", "prod", "--api-url", api.url, "--key-id", admin.keyId];
    const setting = startInPty(process.execPath, [MAIN, ...words], { env });
    await setting.waitFor(`Secret of the key that ends in ${admin.keyId.slice(-4)}: `);
    setting.write(`${admin.keySecret}\r`);
    expect(await setting.exitCode).toBe(0);
    expect(setting.output()).toContain("It is in use.");
    expect(setting.output()).not.toContain(admin.keySecret);
    for (const way of WAYS) {
      expect(await run(way, "organizations", env)).toMatchObject({ code: 0 });
      const listed = await run(way, "profile list", env);
      expect(listed.text).toMatch(new RegExp(`prod +true +${api.url} +${admin.keyId.slice(-4)}`));
      expect(listed.text).not.toContain(admin.keySecret);
      expect(await run(way, "profile use prod", env)).toMatchObject({ code: 0 });
    }
    const removing = startInPty(process.execPath, [MAIN, "profile", "remove", "prod"], { env });
    await removing.waitFor("[y/N]");
    removing.write("y\r");
    expect(await removing.exitCode).toBe(0);
    expect(await run("in a pipe", "organizations", env)).toMatchObject({ code: 2 });
  });

  it("saves no profile if it is interrupted while it reads the secret", async () => {
    const env = emptyHome();
    const words = ["profile", "set", "prod", "--api-url", api.url, "--key-id", admin.keyId];
    const setting = startInPty(process.execPath, [MAIN, ...words], { env });
    await setting.waitFor("Secret of the key");
    setting.write("half\x03");
    expect(await setting.exitCode).toBe(130);
    expect((await run("in a pipe", "profile list", env)).text).toBe(
      "NAME  IN USE  API URL  KEY SUFFIX  CA FILE\n",
    );
  });

  it("reads the secret from standard input in a pipe, without a prompt", async () => {
    const env = emptyHome();
    const words = ["profile", "set", "prod", "--api-url", api.url, "--key-id", admin.keyId];
    expect(await runProgram(words, env)).toMatchObject({
      code: 2,
      err: expect.stringContaining("The secret of the key is missing"),
    });
    const { status } = spawnSync(process.execPath, [MAIN, ...words], { env, input: `${admin.keySecret}\n` });
    expect(status).toBe(0);
    expect(await runProgram(["organizations"], env)).toMatchObject({ code: 0 });
    expect(await runProgram(["profile", "remove", "prod", "--yes"], env)).toMatchObject({ code: 0 });
  });
});

it("a command fails with a clear message if the API address contains an unknown path", async () => {
  const { code, err } = await runProgram(["organizations"], accessTo(`${api.url}/docs`, admin));
  expect(err).toContain("This API has no such path: ");
  expect(err).toContain("Check the address of the API and its base path");
  expect(code).toBe(1);
});

it("a command waits when the key reaches its rate limit, and reports the delay", async () => {
  const limited = await spawnApi(environment, { flags: ["--rate-limit", "1", "--rate-window", "5s"] });
  try {
    // The command sends two requests: for the key's organization, and for the keys.
    const { code, out, err } = await runProgram(["keys"], accessTo(limited.url, admin));
    expect(err).toMatch(/Too many requests with this key: try again in [1-5] s\. \(status 429/);
    expect(err).toMatch(/Trying again in [1-5] s\./);
    expect([code, out]).toEqual([0, expect.stringContaining("ci")]);
  } finally {
    await limited.stop();
  }
});
