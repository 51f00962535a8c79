import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { COMMANDS } from "../../../../src/all-commands.ts";
import {
  changeProfiles,
  type Profiles,
  profilePath,
  readProfiles,
} from "../../../../src/cli/customer/profile-file.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { fakeIo } from "../../../support/fakes/fake-io.ts";

const SECRET = "tops3cret-1e5";
const PROD = "--api-url https://api.example.com --key-id abcdefghijklmnopx7Qd";

let home: string;
let path: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "pipe-scaling-profile-"));
  path = join(home, "pipe-scaling", "profiles.yaml");
  onTestFinished(() => rmSync(home, { recursive: true }));
});

/** Runs a command. The answers are lines typed at the terminal; if undefined, there is no terminal. */
async function run(words: string, answers?: readonly string[], env: Record<string, string> = {}) {
  const io = fakeIo({
    env: { XDG_CONFIG_HOME: home, ...env },
    ...(answers ? { answers, input: true } : {}),
  });
  const code = await runProgram(COMMANDS, words.split(" "), io);
  return { code, ...io.written };
}

/** Runs a command that must succeed. */
async function done(words: string, answers?: readonly string[], env?: Record<string, string>) {
  const { code, out, err } = await run(words, answers, env);
  expect(code, err).toBe(0);
  return { out, err };
}

function mode(of: string): string {
  return (statSync(of).mode & 0o777).toString(8);
}

describe("profile set", () => {
  test("asks for the secret, and stores it in a file that only its owner can read", async () => {
    const { out, err } = await done(`profile set prod ${PROD}`, [SECRET]);
    expect(err).toBe(
      `Secret of the key that ends in x7Qd: Saved the profile prod in ${path}. It is in use.\n`,
    );
    expect(out).toBe("");
    expect([mode(path), mode(dirname(path))]).toEqual(["600", "700"]);
    expect(readdirSync(dirname(path))).toEqual(["profiles.yaml"]);
    expect(readProfiles(path)).toEqual({
      current: "prod",
      profiles: {
        prod: { apiUrl: "https://api.example.com", keyId: "abcdefghijklmnopx7Qd", keySecret: SECRET },
      },
    });
  });

  test.each([
    ["standard input", [SECRET], {}],
    ["the environment variable", [], { PIPE_SCALING_KEY_SECRET: SECRET }],
  ])("reads the secret from %s", async (_, lines, variables) => {
    const io = fakeIo({ env: { XDG_CONFIG_HOME: home, ...variables }, answers: lines });
    expect(await runProgram(COMMANDS, `profile set prod ${PROD}`.split(" "), io)).toBe(0);
    expect(io.written.err).toMatch(/^Saved the profile prod/);
    expect(readProfiles(path).profiles["prod"]?.keySecret).toBe(SECRET);
  });

  test("changes the given fields and the secret", async () => {
    const ca = join(home, "ca.pem");
    writeFileSync(ca, certificatePair("ca").cert);
    await done(`profile set prod ${PROD} --ca-file ${ca}`, [SECRET]);
    await done("profile set prod", ["another"]);
    expect(readProfiles(path).profiles["prod"]).toEqual({
      apiUrl: "https://api.example.com",
      keyId: "abcdefghijklmnopx7Qd",
      keySecret: "another",
      caFile: ca,
    });
    await done("profile set prod --api-url http://localhost:8080/base/ --key-id otherkey", ["third"]);
    expect(readProfiles(path).profiles["prod"]).toMatchObject({
      apiUrl: "http://localhost:8080/base",
      keyId: "otherkey",
    });
  });

  test("changes nothing because of variables for another API", async () => {
    await done(`profile set staging ${PROD}`, [SECRET]);
    const env = {
      PIPE_SCALING_API_URL: "http://other.example.com",
      PIPE_SCALING_KEY_ID: "otherkey",
      PIPE_SCALING_INSECURE_HTTP: "true",
      PIPE_SCALING_CA_FILE: "/none",
    };
    await done("profile set staging", ["another"], env);
    expect(readProfiles(path).profiles["staging"]).toEqual({
      apiUrl: "https://api.example.com",
      keyId: "abcdefghijklmnopx7Qd",
      keySecret: "another",
    });
  });

  test("does not change which profile is in use", async () => {
    await done(`profile set prod ${PROD}`, [SECRET]);
    const { err } = await done(`profile set staging ${PROD}`, [SECRET]);
    expect(err).toContain(
      "Use it with --profile staging, or by default after `pipe-scaling profile use staging`.",
    );
    expect(readProfiles(path).current).toBe("prod");
  });

  test("replaces the target of a symbolic link, not the link", async () => {
    const real = join(home, "real.yaml");
    mkdirSync(dirname(path));
    writeFileSync(real, "profiles: {}\n", { mode: 0o600 });
    symlinkSync(real, path);
    await done(`profile set prod ${PROD}`, [SECRET]);
    expect(readFileSync(real, "utf8")).toContain(SECRET);
    expect(mode(real)).toBe("600");
  });

  test("fails without a secret with exit code 2 and the ways to provide it, and writes nothing", async () => {
    const { code, out, err } = await run(`profile set prod ${PROD}`);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(
      "The secret of the key is missing. Type it, pass it on standard input, or set PIPE_SCALING_KEY_SECRET.",
    );
    expect(readdirSync(home)).toEqual([]);
  });

  test.each([
    [
      "profile set prod --key-id a",
      "The profile prod does not exist yet. To create it, specify --api-url",
      2,
    ],
    ["profile set a/b --api-url https://x --key-id a", '<name> is "a/b", but it must be a name', 2],
    ["profile set __proto__ --api-url https://x --key-id a", "but it must be a name", 2],
    [
      "profile set prod --api-url https://x/v1 --key-id a",
      '--api-url is "https://x/v1", but it must be the address of an API',
      2,
    ],
    [`profile set prod --api-url https://me:${SECRET}@x --key-id a`, "without a user", 2],
    [`profile set prod --api-url me:${SECRET}@x --key-id a`, "--api-url is invalid: it must be the addr", 2],
    ["profile set prod --api-url ftp://x --key-id a", "but it must be the address of an API", 2],
    [`profile set prod --api-url https://x --key-id a:${SECRET}`, "invalid: it must be the ID of a key", 2],
    [`profile set prod ${SECRET}`, "Too many arguments for 'set'. Expected 1 argument but got 2.\n", 2],
    [`profile set prod --key-secret=${SECRET}`, "Unknown option '--key-secret'.\n", 2],
    [
      "profile set prod --api-url http://api.example.com --key-id a",
      "http://api.example.com uses plain HTTP to another machine, so anyone on the network could read the key. Use https://, or allow it with --insecure-http",
      2,
    ],
    ["profile set prod --api-url http://[::2]:80 --key-id a", "plain HTTP to another machine", 2],
    [
      "profile set prod --api-url https://x --key-id a --ca-file /etc/hostname",
      "The certificate file /etc/hostname cannot be used: ",
      1,
    ],
  ])("rejects an invalid command with a message: %s", async (words, sentence, expected) => {
    const { code, err } = await run(words, [SECRET]);
    expect(err).toContain(sentence);
    expect(err).not.toContain(SECRET);
    expect(code).toBe(expected);
    expect(readdirSync(home)).toEqual([]);
  });

  test.each(["", "two words", "tab\tbed"])("rejects the secret %j, and does not print it", async (typed) => {
    const { code, err } = await run(`profile set prod ${PROD}`, [typed]);
    expect(code).toBe(1);
    expect(err).toContain("The secret of the key is malformed: it must be printable ASCII characters");
    if (typed) expect(err).not.toContain(typed);
  });

  test.each(["http://127.0.0.1:8080", "http://localhost", "http://[::1]:80"])(
    "accepts %s without a warning",
    async (url) => {
      await done(`profile set local --api-url ${url} --key-id a`, [SECRET]);
    },
  );

  test("allows plain HTTP only for the address for which --insecure-http was given", async () => {
    await done("profile set prod --api-url http://one.example --key-id a --insecure-http", [SECRET]);
    await done("profile set prod", [SECRET]);
    expect((await run("profile set prod --api-url http://two.example", [SECRET])).code).toBe(2);
  });
});

describe("profiles", () => {
  beforeEach(async () => {
    await done(`profile set prod ${PROD}`, [SECRET]);
    await done("profile set staging --api-url https://staging.example.com --key-id keyofstaging", [SECRET]);
  });

  test("are listed without their secrets and key IDs", async () => {
    const { out } = await done("profile list");
    expect(out).toBe(
      [
        "NAME     IN USE  API URL                      KEY SUFFIX  CA FILE",
        "prod     true    https://api.example.com      x7Qd        -",
        "staging  false   https://staging.example.com  ging        -",
        "",
      ].join("\n"),
    );
    for (const format of ["json", "yaml"]) {
      const { out: data } = await done(`profile list --output ${format}`);
      expect(data).not.toMatch(/tops3cret|abcdef|keyofstaging/);
      expect(data).toContain("x7Qd");
    }
  });

  test("are selected with use and deleted with remove", async () => {
    expect((await done("profile use staging")).err).toBe("The profile staging is in use.\n");
    expect((await done("profile remove staging", ["y"])).err).toBe(
      "Remove the profile staging with its secret? [y/N] Removed the profile staging.\n",
    );
    const { current, profiles } = readProfiles(path);
    expect([current, ...Object.keys(profiles)]).toEqual([undefined, "prod"]);
    const { code, err } = await run("organizations");
    expect(code).toBe(2);
    expect(err).toContain(
      "No profile is selected. Specify one with --profile, or select a default with `pipe-scaling profile use NAME`. Profiles: prod.",
    );
    await done("profile remove prod --yes");
  });

  test("are not removed without confirmation", async () => {
    expect(await run("profile remove prod", ["n"])).toMatchObject({ code: 1 });
    const unconfirmed = await run("profile remove prod");
    expect(unconfirmed.code).toBe(2);
    expect(unconfirmed.err).toContain("Confirm with --yes");
    expect(Object.keys(readProfiles(path).profiles)).toEqual(["prod", "staging"]);
  });

  test.each(["profile use nine", "profile remove nine --yes", "keys --profile nine"])(
    "are listed in the error for an unknown name, with exit code 2: %s",
    async (words) => {
      const { code, err } = await run(words);
      expect(err).toContain('There is no profile "nine". Profiles: prod, staging.');
      expect(code).toBe(2);
    },
  );

  test.each(["640", "604", "620"])(
    "are rejected while the file has mode %s, with the command that fixes it",
    async (octal) => {
      chmodSync(path, Number.parseInt(octal, 8));
      for (const words of ["organizations", "profile list", "profile set prod"]) {
        const { code, err } = await run(words, [SECRET]);
        expect(err).toContain(
          `The profile file ${path} contains secrets, and other users can read or change it (mode 0${octal}): run \`chmod 600 ${path}\``,
        );
        expect(code).toBe(1);
      }
      expect(mode(path)).toBe(octal);
    },
  );

  test.each([
    ["profiles: [", "is not YAML"],
    [`profiles: {prod: {apiUrl: x, keyId: a, keySecret: ${SECRET}}}`, "profiles.prod.apiUrl: it must be"],
    [`profiles: {prod: {keySecret: ${SECRET}, keySecrett: ${SECRET}}}`, "keySecrett"],
    [`- ${SECRET}`, "expected object"],
  ])(
    "cause an error with the position but not the contents if they are malformed: %s",
    async (text, where) => {
      writeFileSync(path, text);
      const { code, err } = await run("organizations");
      expect(err).toContain(`The profile file ${path} is malformed:`);
      expect(err).toContain(where);
      expect(err).not.toContain(SECRET);
      expect(code).toBe(1);
    },
  );

  test("are rejected in a file that belongs to another user", () => {
    // Only root can change the owner of a file. Other users use /etc/passwd, which they do not own.
    const [file, isRoot] = [join(home, "others.yaml"), process.geteuid?.() === 0];
    writeFileSync(file, "", { mode: 0o600 });
    if (isRoot) chownSync(file, 12_345, 12_345);
    expect(() => readProfiles(isRoot ? file : "/etc/passwd")).toThrow("belongs to another user");
  });

  test("are rejected in a named pipe, which would block the command", async () => {
    rmSync(path);
    spawnSync("sh", ["-c", 'mkfifo -m 600 "$0"', path]);
    const { code, err } = await run("organizations");
    expect(err).toContain(`${path} must be a regular file. Remove it`);
    expect(code).toBe(1);
  });

  test("are not read if flags and environment variables provide everything", async () => {
    chmodSync(path, 0o644);
    const { err } = await run("organizations --api-url http://127.0.0.1:1 --key-id a", undefined, {
      PIPE_SCALING_KEY_SECRET: SECRET,
    });
    expect(err).toContain("http://127.0.0.1:1 did not respond: connect ECONNREFUSED 127.0.0.1:1.");
  });
});

describe("the profile file", () => {
  const profile = { apiUrl: "https://api.example.com", keyId: "a", keySecret: SECRET };
  const adding = (name: string) => (known: Profiles) => ({
    ...known,
    profiles: { ...known.profiles, [name]: profile },
  });

  test.each([[[]], [["first"]]])("keeps the change that another command makes meanwhile: %j", (known) => {
    for (const name of known) changeProfiles(path, adding(name));
    let times = 0;
    const changed = changeProfiles(path, (profiles) => {
      times += 1;
      if (times === 1) changeProfiles(path, adding("theirs"));
      return adding("ours")(profiles);
    });
    expect(Object.keys(changed.profiles)).toEqual([...known, "theirs", "ours"]);
    expect(readProfiles(path)).toEqual(changed);
    expect(times).toBe(2);
    expect(readdirSync(dirname(path))).toEqual(["profiles.yaml"]);
  });

  test.each([
    [{ XDG_CONFIG_HOME: "/config", HOME: "/home/a" }, "/config/pipe-scaling/profiles.yaml"],
    [{ XDG_CONFIG_HOME: "config", HOME: "/home/a" }, "/home/a/.config/pipe-scaling/profiles.yaml"],
    [{ HOME: "/home/a" }, "/home/a/.config/pipe-scaling/profiles.yaml"],
  ])("with the environment %j has the path %s", (env, expected) => {
    expect(profilePath(env)).toBe(expected);
  });
});
