import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { KUBECTL_COMMANDS } from "../../../src/all-commands.ts";
import { KUBECTL_PLUGIN } from "../../../src/cli/command.ts";
import { KUBECTL_COMPLETION_SCRIPT } from "../../../src/cli/completion/kubectl.ts";
import { runProgram } from "../../../src/cli/program.ts";
import type { Environment } from "../../../src/settings/option.ts";
import { startFakeHttpServer } from "../../support/fakes/fake-http-server.ts";
import { fakeIo } from "../../support/fakes/fake-io.ts";
import { temporaryFolder } from "../../support/fixtures/kubeconfig.ts";

function run(...words: readonly string[]) {
  return runIn({}, ...words);
}

async function runIn(env: Environment, ...words: readonly string[]) {
  const io = fakeIo({ env, program: KUBECTL_PLUGIN });
  const code = await runProgram(KUBECTL_COMMANDS, words, io);
  return { code, ...io.written };
}

/** A command of pipe-scaling, and not the name of a namespace or of the product. */
const OTHER_PROGRAM = /\bpipe-scaling (?!operator)/;

describe("the help of the plugin", () => {
  test("lists the commands that use a kubeconfig, and the options of kubectl", async () => {
    const { code, out, err } = await run("--help");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^Usage: kubectl pipes \[options\] \[command\]\n/);
    const commands = [...(out.split("\nCommands:\n")[1] ?? "").matchAll(/^ {2}(\w+)/gm)].map(
      ([, name]) => name,
    );
    expect(commands.slice(0, 4)).toEqual(["admin", "status", "doctor", "completion"]);
    for (const term of ["--context <name>", "-n, --namespace <name>", "--kubeconfig <file>"]) {
      expect(out).toContain(`  ${term}`);
    }
  });

  test.each(KUBECTL_COMMANDS.commands)("of $name says kubectl pipes everywhere", async ({ name }) => {
    const { code, out } = await run(...name.split(" "), "--help");
    expect(code).toBe(0);
    expect(out).toContain(`Usage: kubectl pipes ${name} [options]`);
    expect(out).toContain(`Examples:\n  kubectl pipes ${name}`);
    expect(out).not.toMatch(OTHER_PROGRAM);
  });
});

test.each([
  ["stats", "Unknown command 'stats'. Did you mean status?\nSee kubectl pipes --help.\n"],
  ["admin key lits", "Unknown command 'lits'. Did you mean list?\nSee kubectl pipes admin key --help.\n"],
  ["status --timeout 5m", "--timeout needs --watch.\nSee kubectl pipes status --help.\n"],
  ["keys", "Unknown command 'keys'.\nSee kubectl pipes --help.\n"],
])("the wrong command line %s gets an error that names kubectl pipes", async (words, error) => {
  expect(await run(...words.split(" "))).toEqual({ code: 2, out: "", err: error });
});

/** Two empty clusters, and a kubeconfig with a context for each. Requests are paths. */
async function twoClusters() {
  const servers = await Promise.all(
    ["first", "second"].map(async (name) => ({
      name,
      server: await startFakeHttpServer(() => ({ status: 200, body: { metadata: {}, items: [] } })),
    })),
  );
  const kubeconfig = join(temporaryFolder(), "kubeconfig");
  const config = {
    "current-context": "first",
    clusters: servers.map(({ name, server }) => ({ name, cluster: { server: server.url } })),
    contexts: servers.map(({ name }) => ({ name, context: { cluster: name } })),
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  const requested = () => servers.filter(({ server }) => server.requests.length > 0).map(({ name }) => name);
  const paths = () => servers.flatMap(({ server }) => server.requests.map(({ path }) => path));
  return { kubeconfig, requested, paths };
}

describe("the options of kubectl", () => {
  test.each([
    "status --kubeconfig FILE --context second -n acme",
    "--kubeconfig FILE --context second -n acme status",
    "--kubeconfig=FILE --context=second --namespace=acme status",
    "--context second status -n acme --kubeconfig FILE",
    "admin --context second service -n acme list --kubeconfig FILE",
    "admin service --context second list --kubeconfig FILE -n acme",
    "--context first -n other --kubeconfig FILE status --context second -n acme",
  ])("choose the cluster and the namespace in: %s", async (line) => {
    const { kubeconfig, requested, paths } = await twoClusters();
    const words = line.replaceAll("FILE", kubeconfig).split(" ");
    const { code, err } = await run(...words);
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(requested()).toEqual(["second"]);
    expect(paths().filter((path) => path.includes("/configmaps"))).not.toEqual([]);
    for (const path of paths()) {
      if (path.includes("/configmaps")) expect(path).toContain("/namespaces/acme/configmaps");
    }
  });

  test("select the current context by default", async () => {
    const { kubeconfig, requested } = await twoClusters();
    const { err } = await run("status", "--kubeconfig", kubeconfig);
    expect(err).toBe("There is no service yet: see kubectl pipes admin service create --help.\n");
    expect(requested()).toEqual(["first"]);
  });

  test("get an error that lists the contexts if there is no such context", async () => {
    const { kubeconfig, requested } = await twoClusters();
    expect(await run("--context", "third", "status", "--kubeconfig", kubeconfig)).toEqual({
      code: 1,
      out: "",
      err: `The kubeconfig ${kubeconfig} has no context "third": name one of its contexts: first, second.\n`,
    });
    expect(requested()).toEqual([]);
  });

  test("get an error if their value is missing", async () => {
    expect(await run("status", "--context")).toMatchObject({
      code: 2,
      err: "Option '--context <name>' argument missing.\nSee kubectl pipes status --help.\n",
    });
  });
});

test("a remedy of doctor names kubectl pipes", async () => {
  const { kubeconfig } = await twoClusters();
  const { out } = await run("doctor", "--kubeconfig", kubeconfig, "-o", "json");
  expect(out).toContain("kubectl pipes admin organization create --create-namespace");
  expect(out).not.toMatch(OTHER_PROGRAM);
});

describe("the completion of the plugin", () => {
  /** The candidates without their descriptions, and the directive of cobra. */
  async function complete(...words: readonly string[]): Promise<readonly string[]> {
    const { code, out, err } = await run("__complete", "--", ...words);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return out
      .trimEnd()
      .split("\n")
      .map((line) => line.replace(/\t.*/, ""));
  }

  test.each<readonly [words: readonly string[], lines: readonly string[]]>([
    [["st"], ["status", ":4"]],
    [[""], ["admin", "status", "doctor", "completion", ":4"]],
    [["--c"], ["--context", ":4"]],
    [
      ["--context", "x", "-n", "acme", "doc"],
      ["doctor", ":4"],
    ],
    [
      ["--context=x", "doc"],
      ["doctor", ":4"],
    ],
    [
      ["admin", "--context", "x", "member", "a"],
      ["add", ":4"],
    ],
    [
      ["admin", "--n"],
      ["--namespace", ":4"],
    ],
    [["-n", ""], [":4"]],
    [["--kubeconfig", ""], [":0"]],
    [["status", "--kubeconfig", "~/.ku"], [":0"]],
    [
      ["status", "-o", ""],
      ["table", "json", "yaml", "wide", ":4"],
    ],
    [
      ["status", "--output=j"],
      ["json", ":4"],
    ],
    [
      ["status", "orders", "-w", "--context", "x", "--wat"],
      ["--watch", ":4"],
    ],
    [["nonsense", ""], [":4"]],
  ])("of %j is %j", async (words, lines) => {
    expect(await complete(...words)).toEqual(lines);
  });

  test.each(["KUBECONFIG", "PIPE_SCALING_KUBECONFIG"])("offers the contexts of %s", async (variable) => {
    const { kubeconfig } = await twoClusters();
    const env = { [variable]: kubeconfig };
    const names = async (...words: readonly string[]) =>
      (await runIn(env, "__complete", "--", ...words)).out.replace(/\t.*/gm, "");
    expect(await names("--context", "")).toBe("first\nsecond\n:4\n");
    expect(await names("status", "--context", "s")).toBe("second\n:4\n");
  });

  test("offers no contexts if the kubeconfig cannot be read", async () => {
    const broken = join(temporaryFolder(), "broken");
    writeFileSync(broken, "contexts: [");
    expect((await runIn({ KUBECONFIG: broken }, "__complete", "--", "--context", "")).out).toBe(":4\n");
  });

  test("has a description after a tab in each line", async () => {
    expect((await run("__complete", "--", "stat")).out).toBe("status\tshow the progress of rescales\n:4\n");
  });

  test("is a program that the plugin prints", async () => {
    expect(await run("completion")).toEqual({ code: 0, out: KUBECTL_COMPLETION_SCRIPT, err: "" });
  });
});
