import { describe, expect, test } from "vitest";
import { admin } from "../../../src/cli/admin/admin.ts";
import { defineCommand } from "../../../src/cli/command.ts";
import { CliError } from "../../../src/cli/failure.ts";
import { Interruption } from "../../../src/cli/io.ts";
import { argument, uuid } from "../../../src/cli/options.ts";
import { runProgram } from "../../../src/cli/program.ts";
import { KubeApiError, KubeConfigError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import { option } from "../../../src/settings/option.ts";
import { integer, listOf, nonEmptyText, onOff } from "../../../src/settings/values.ts";
import { fakeIo } from "../../support/fakes/fake-io.ts";
import { noAddress } from "../../support/fixtures/no-address.ts";

const ORGANIZATION = "6f1c2f0e-58a2-4c3e-9a55-0d6a1b9b3c11";

/** Runs the program with its own commands and two test commands, one of which can throw `ending`. */
async function run(
  words: string,
  { env = {}, ending }: { env?: Record<string, string>; ending?: Error } = {},
) {
  const seen: unknown[] = [];
  const tryIt = defineCommand({
    name: "try-it",
    summary: "try it",
    examples: ["try-it --loud"],
    options: {
      loud: option(onOff, { description: "shout", default: "false" }),
      word: option(listOf(nonEmptyText).optional(), { placeholder: "w", description: "a word", list: true }),
      title: option(nonEmptyText.optional(), { placeholder: "t", description: "a title" }),
    },
    async run(values) {
      if (ending) throw ending;
      seen.push(values);
    },
  });
  const tryArgs = defineCommand({
    name: "try-args",
    summary: "try arguments",
    examples: ["try-args 3"],
    options: {
      count: argument(integer(1, 9), "how many"),
      title: argument(nonEmptyText.optional(), "a title"),
      loud: option(onOff, { description: "shout", default: "false" }),
      password: option(uuid, { description: "a password", secret: true }),
    },
    async run(values) {
      seen.push(values);
      return values.count;
    },
  });
  const io = fakeIo({ env });
  const code = await runProgram(
    { version: "1.2.3", description: "Tries commands.", commands: [tryIt, tryArgs, ...admin] },
    words.split(" ").filter(Boolean),
    io,
  );
  return { code, ...io.written, seen };
}

describe("help", () => {
  test("lists the commands and exit codes of the program", async () => {
    const { code, out, err } = await run("--help");
    expect([code, err]).toEqual([0, ""]);
    for (const word of ["try-it", "admin", "Exit codes:\n    0  done\n", "PIPE_SCALING_"]) {
      expect(out).toContain(word);
    }
  });

  const all = admin.map(({ name }) => name);

  /** Flags of update and rollback commands that have no variable, because a variable applies to all commands. */
  const CHANGES = [
    "--name",
    "--tier",
    "--rollout-window",
    "--role",
    "--expire-at",
    "--allow-from",
    "--to",
    "--for",
  ];

  test.each(["try-it", ...all])(
    "lists the flags of %s with their variables and examples",
    async (command) => {
      const { code, out, err } = await run(`${command} --help`);
      expect([code, err]).toEqual([0, ""]);
      expect(out).toContain(`Usage: pipe-scaling ${command}`);
      expect(out).toContain(`Examples:\n  pipe-scaling ${command}`);
      const flags = [...out.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag = ""]) => flag);
      expect(flags.length).toBeGreaterThan(1);
      for (const flag of flags) {
        const variable = `PIPE_SCALING_${flag.slice(2).replaceAll("-", "_").toUpperCase()}`;
        const isChange = / (update|rollback|open-window)$/.test(command) && CHANGES.includes(flag);
        expect(new RegExp(`\\b${variable}\\b`).test(out), variable).toBe(!isChange);
      }
    },
  );

  test.each(["help admin organization create", "help admin organization create now"])(
    "is the same with %s",
    async (words) => {
      expect(await run(words)).toEqual(await run("admin organization create --help"));
    },
  );

  test.each(["help nothing", "help admin nothing", "help admin organization nothing"])(
    "is an error with %s",
    async (words) => {
      const { code, out, err } = await run(words);
      expect([code, out]).toEqual([2, ""]);
      expect(err).toContain(`Unknown command '${words.slice("help ".length)}'`);
    },
  );

  test.each(["help", "help --help", "help admin --help"])("is no error with %s", async (words) => {
    expect(await run(words)).toMatchObject({ code: 0, err: "" });
  });

  test("lists the arguments, and the variables without a flag", async () => {
    const { out } = await run("try-args --help");
    expect(out).toContain("Usage: pipe-scaling try-args [options] <count> [title]\n");
    expect(out).toMatch(/\nArguments:\n {2}count +how many\n {2}title +a title\n/);
    expect(out).toMatch(
      /\nVariables without a flag:\n {2}PIPE_SCALING_PASSWORD {2}a password \(required\)\n/,
    );
    expect(out).not.toContain("--password");
  });

  test("is printed as an error if the command is missing or incomplete", async () => {
    for (const words of ["", "admin", "admin organization"]) {
      const { code, out, err } = await run(words);
      expect([code, out]).toEqual([2, ""]);
      expect(err).toContain("Usage: pipe-scaling");
    }
  });

  test("is not printed with --version, which prints only the version", async () => {
    expect(await run("--version")).toMatchObject({ code: 0, out: "1.2.3\n", err: "" });
  });
});

describe("an invalid command line ends with exit code 2 and a message", () => {
  test.each([
    ["try-it --lout", "Unknown option '--lout'. Did you mean --loud?\nSee pipe-scaling try-it --help"],
    ["try-it now", "Too many arguments for 'try-it'. Expected 0 arguments but got 1.\n"],
    ["tryit", "Unknown command 'tryit'. Did you mean try-it?\nSee pipe-scaling --help"],
    [
      "try-args",
      "<count> is missing: how many.\nPIPE_SCALING_PASSWORD is missing: a password.\nSee pipe-scaling try-args --help",
    ],
    ["try-args ten", '<count> is "ten", but it must be a whole number from 1 to 9.\n'],
    ["try-args 3 title more", "Too many arguments for 'try-args'. Expected 2 arguments but got 3.\n"],
    ["try-args 3 --password x", "Unknown option '--password'.\nSee pipe-scaling try-args --help"],
    ["admin organization show acme --output xml", "See pipe-scaling admin organization show --help"],
    [
      "admin organization update 6f1c2f0e-58a2-4c3e-9a55-0d6a1b9b3c11",
      "Nothing to change. Specify --tier, --name",
    ],
    [
      "admin organization lits",
      "Unknown command 'lits'. Did you mean list?\nSee pipe-scaling admin organization --help",
    ],
    ["try-it --title", "Option '--title <t>' argument missing.\nSee"],
    ["admin organization create --name x", "--tier (or PIPE_SCALING_TIER) is missing: tier, which sets"],
    [
      "admin organization create --name x --tier gold",
      'The tier is "gold", but it must be one of the built-in tiers (--tiers-file names others): basic, scale, enterprise.',
    ],
    [
      "admin organization create --name x --tier gold --tiers-file test/e2e/demo/tiers.yaml",
      "it must be one of the tiers in test/e2e/demo/tiers.yaml: ",
    ],
    ["admin organization create --name x --tier basic --id 12", 'is "12", but it must be a UUID such as'],
    ["admin organization create --name x --tier basic --tiers-file /no/such", "--tiers-file"],
    ["admin organization list --output xml", 'is "xml", but it must be table, json or yaml.'],
    [
      "admin service create --organization x --name y",
      "--pipes-namespace (or PIPE_SCALING_PIPES_NAMESPACE) is missing",
    ],
    [
      `admin member add --organization ${ORGANIZATION} --user-id u --name n --email x --role owner`,
      'is "owner", but it must be admin or developer.',
    ],
    [
      `admin member add --organization ${ORGANIZATION} --user-id u --name n --email x --role admin`,
      'is "x", but it must be an e-mail address.',
    ],
    [`admin key create --organization ${ORGANIZATION} --name n`, "--role (or PIPE_SCALING_ROLE) is missing"],
    [
      `admin key create --organization ${ORGANIZATION} --name n --role admin --role root`,
      'is "admin,root", but it must be admin or developer.',
    ],
    [
      `admin key create --organization ${ORGANIZATION} --name n --role admin --expire-at 2020-01-01T00:00:00Z`,
      "but it must be a date and time to come",
    ],
    [
      `admin key create --organization ${ORGANIZATION} --name n --role admin --expire-at tomorrow`,
      "but it must be a date and time to come",
    ],
    [
      `admin key create --organization ${ORGANIZATION} --name n --role admin --allow-from 10.0.0.0/33`,
      "must be an IP address or a CIDR",
    ],
  ])("%s", async (words, sentence) => {
    const { code, out, err } = await run(words);
    expect(err).toContain(sentence);
    expect(err).toMatch(/See pipe-scaling .*--help\.\n$/);
    expect([code, out]).toEqual([2, ""]);
  });
});

describe("a command", () => {
  test("gets its arguments and options, and returns its exit code", async () => {
    const env = { PIPE_SCALING_PASSWORD: ORGANIZATION };
    const { code, seen } = await run("try-args 3 --loud hello", { env });
    expect(code).toBe(3);
    expect(seen).toEqual([{ count: 3, title: "hello", loud: true, password: ORGANIZATION }]);
  });

  test("fails for an invalid secret without printing its value", async () => {
    const { code, err } = await run("try-args 3", { env: { PIPE_SCALING_PASSWORD: "hunter2" } });
    expect(code).toBe(2);
    expect(err).toContain("PIPE_SCALING_PASSWORD is invalid: it must be a UUID");
    expect(err).not.toContain("hunter2");
  });

  test("reports the signal that interrupted it", async () => {
    const interruption = new Interruption("SIGTERM", 143);
    for (const ending of [interruption, new Error("the call was ended", { cause: interruption })]) {
      expect(await run("try-it", { ending })).toMatchObject({ code: 143, out: "", err: "Interrupted.\n" });
    }
  });

  test("gets the last value of a repeated flag", async () => {
    expect((await run("try-it --title a --title b")).seen).toMatchObject([{ title: "b" }]);
  });

  test("gets the values of flags and variables, and the joined values of repeated list flags", async () => {
    const env = { PIPE_SCALING_TITLE: "from the environment", PIPE_SCALING_WORD: "ignored" };
    const { code, seen } = await run("try-it --loud --word a --word b,c", { env });
    expect(code).toBe(0);
    expect(seen).toEqual([{ loud: true, word: ["a", "b", "c"], title: "from the environment" }]);
  });

  test.each([
    [new CliError("There is none of that."), "There is none of that.\n"],
    [new KubeConfigError("The kubeconfig x does not exist."), "The kubeconfig x does not exist.\n"],
    [
      new KubeUnreachableError("GET /x: no response from https://y: connect ECONNREFUSED"),
      "The Kubernetes API cannot be reached: GET /x: no response from https://y: connect ECONNREFUSED. Check the kubeconfig, and that its server runs.\n",
    ],
    [
      new KubeApiError("POST /x", 403, '{"message":"you may not"}'),
      "The Kubernetes API rejected the request: POST /x: 403 you may not.\n",
    ],
    [
      new KubeApiError("GET /x", 500, '{"message":"etcdserver: request timed out"}'),
      "The Kubernetes API did not complete the request: GET /x: 500 etcdserver: request timed out.\n",
    ],
    [
      new KubeApiError("PATCH /x", 504, '{"message":"context deadline exceeded"}'),
      "The Kubernetes API did not complete the request: PATCH /x: 504 context deadline exceeded. The change may have been made: check before you run the command again.\n",
    ],
    [
      new KubeUnreachableError("PATCH /x: no response from https://y: other side closed"),
      "The Kubernetes API did not complete the request: PATCH /x: no response from https://y: other side closed. The change may have been made: check before you run the command again.\n",
    ],
    [
      new KubeUnreachableError("POST /subjectaccessreviews: no response from https://y: other side closed"),
      "The Kubernetes API cannot be reached: POST /subjectaccessreviews: no response from https://y: other side closed. Check the kubeconfig, and that its server runs.\n",
    ],
    ...[new KubeConfigError("no token"), noAddress()].map((cause): [Error, string] => [
      new KubeUnreachableError("PATCH /x: not sent", { cause }),
      "The Kubernetes API cannot be reached: PATCH /x: not sent. Check the kubeconfig, and that its server runs.\n",
    ]),
    [
      new Error("127.0.0.1 port 1 is in use by another program: stop it or choose another port", {
        cause: Object.assign(new Error("listen"), { code: "EADDRINUSE", syscall: "listen" }),
      }),
      "127.0.0.1 port 1 is in use by another program: stop it or choose another port.\n",
    ],
    [noAddress(), "connect ECONNREFUSED ::1:1.\n"],
  ])("ends with exit code 1 and a one-line message after an external failure: %s", async (ending, line) => {
    expect(await run("try-it", { ending })).toMatchObject({ code: 1, out: "", err: line });
  });

  test("prints a stack trace after a programming error", async () => {
    const { code, err } = await run("try-it", { ending: new TypeError("x is not a function") });
    expect(code).toBe(1);
    expect(err).toMatch(/^TypeError: x is not a function\n {4}at /);
  });
});
