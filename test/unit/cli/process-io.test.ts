import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { startInPty } from "../../support/terminal/pty.ts";

const source = (name: string) => fileURLToPath(new URL(`../../../src/cli/${name}.ts`, import.meta.url));

/** A program with one command, whose body can use `io`. */
function program(body: string): string[] {
  const code = `
    import { defineCommand } from ${JSON.stringify(source("command"))};
    import { processIo } from ${JSON.stringify(source("process-io"))};
    import { runProgram } from ${JSON.stringify(source("program"))};
    const command = defineCommand({
      name: "try-it", summary: "try it", examples: [], options: {},
      async run(values, io) { ${body} },
    });
    const spec = { version: "1", description: "tries it", commands: [command] };
    process.exitCode = await runProgram(spec, ["try-it"], processIo(process.env, "pipe-scaling"));`;
  return ["--input-type=module", "--eval", code];
}

function inPty(body: string, env: Readonly<Record<string, string>> = {}) {
  return startInPty(process.execPath, program(body), { env });
}

function inPipe(body: string, input = "") {
  const child = spawn(process.execPath, program(body), { stdio: "pipe", env: {} });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  child.stdin.end(input);
  return child;
}

async function resultInPipe(body: string, input?: string) {
  const child = inPipe(body, input);
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  return { code, out, err };
}

describe("a terminal", () => {
  const TELL = "io.out(JSON.stringify({ ...io.terminal, columns: io.terminal.columns() }))";
  const expected = (over: object) =>
    JSON.stringify({ input: true, output: true, colors: true, columns: 100, ...over });

  test.each([
    [{}, {}],
    [{ NO_COLOR: "1" }, { colors: false }],
    [{ NO_COLOR: "" }, {}],
    [{ TERM: "dumb" }, { output: false, colors: false }],
  ])("has the expected colors and live view in the environment %j", async (env, over) => {
    const pty = inPty(TELL, env);
    expect(await pty.exitCode).toBe(0);
    expect(JSON.parse(pty.output())).toEqual(JSON.parse(expected(over)));
  });

  test("is not detected for a pipe", async () => {
    const { code, out } = await resultInPipe(TELL);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ input: false, output: false, colors: false, columns: 80 });
  });
});

describe("a question", () => {
  const TELL = "io.out('got ' + JSON.stringify(answer) + '\\n')";
  const ASK = `const answer = await io.ask("Sure? "); ${TELL}`;
  const ASK_SECRET = `const answer = await io.askSecret("Secret? "); ${TELL}`;

  test("echoes the answer and returns it", async () => {
    const pty = inPty(ASK);
    await pty.waitFor("Sure? ");
    pty.write("yes\r");
    expect(await pty.exitCode).toBe(0);
    expect(pty.output()).toMatch(/^Sure\? yes\r\ngot "yes"\r\n$/);
  });

  test("does not echo a secret, not even its length", async () => {
    const pty = inPty(ASK_SECRET);
    await pty.waitFor("Secret? ");
    pty.write("hush");
    pty.write("\u007fH\r");
    expect(await pty.exitCode).toBe(0);
    expect(pty.output()).toBe('Secret? \r\ngot "husH"\r\n');
  });

  test.each([
    ["with echo", ASK, "Sure? "],
    ["without echo", ASK_SECRET, "Secret? "],
  ])(
    "%s ends with exit code 130 and no stack trace after Ctrl-C, and without an answer after Ctrl-D",
    async (_, body, prompt) => {
      const interrupted = inPty(body);
      await interrupted.waitFor(prompt);
      interrupted.write("x\u0003");
      expect(await interrupted.exitCode).toBe(130);
      expect(interrupted.output()).toMatch(/\nInterrupted\.\r\n$/);
      expect(interrupted.output()).not.toMatch(/ at /);

      const ended = inPty(body);
      await ended.waitFor(prompt);
      ended.write("\u0004");
      expect(await ended.exitCode).toBe(0);
      expect(ended.output()).toContain("\ngot undefined");
    },
  );

  test("reads the first line of a pipe", async () => {
    for (const body of [ASK, ASK_SECRET]) {
      expect(await resultInPipe(body, "a\r\nb\n")).toMatchObject({ code: 0, out: 'got "a"\n' });
    }
    expect(await resultInPipe(ASK, "")).toMatchObject({ code: 0, out: "got undefined\n" });
  });

  test("does not keep the process alive", async () => {
    const child = spawn(process.execPath, program(ASK), { stdio: "pipe", env: {} });
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    child.stdin.write("yes\n");
    // Standard input stays open.
    expect(await once(child, "exit")).toEqual([0, null]);
  });
});

test("a message is printed without the control codes that it quotes", async () => {
  const pty = inPty(`io.err("No organization \\u001b[2J\\u009b2J\\rAcme:\\n\\tfind another.\\n")`);
  expect(await pty.exitCode).toBe(0);
  expect(pty.output()).toBe("No organization  [2J 2J Acme:\r\n\tfind another.\r\n");
});

describe("a signal", () => {
  const WAIT = "io.out('waiting\\n'); const timer = setInterval(() => undefined, 1000);";
  const SEEN = `
    const { signal } = io;
    ${WAIT}
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    clearInterval(timer);
    throw new Error("the call was ended", { cause: signal.reason });`;

  async function waiting(body: string) {
    const child = inPipe(body);
    await once(child.stdout, "data");
    return child;
  }

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("of type %s ends a command that handles it with exit code %i", async (signal, exitCode) => {
    const child = await waiting(SEEN);
    const err = text(child.stderr);
    child.kill(signal);
    expect(await once(child, "exit")).toEqual([exitCode, null]);
    expect(await err).toBe("Interrupted.\n");
  });

  test("ends a command that does not handle it", async () => {
    const child = await waiting(`${WAIT} await new Promise(() => undefined)`);
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([null, "SIGINT"]);
  });

  test.each([
    ["SIGINT", "SIGINT"],
    ["SIGINT", "SIGTERM"],
    ["SIGTERM", "SIGINT"],
  ] as const)("%s ends a command that ignores it if %s follows", async (first, second) => {
    const child = await waiting(
      `io.signal.addEventListener("abort", () => io.out("once\\n")); ${WAIT} await new Promise(() => undefined)`,
    );
    child.kill(first);
    await once(child.stdout, "data");
    child.kill(second);
    expect(await once(child, "exit")).toEqual([null, second]);
  });
});

test("a closed standard output ends the program without a stack trace", async () => {
  const child = inPipe(
    "for (;;) { io.out('x'.repeat(65536)); await new Promise((go) => setImmediate(go)); }",
  );
  const err = text(child.stderr);
  await once(child.stdout, "data");
  child.stdout.destroy();
  expect(await once(child, "exit")).toEqual([141, null]);
  expect(await err).toBe("");
});
