import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { killProgramsRunFrom, programsRunFrom } from "@pipe-scaling/local-cluster/processes";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { KubeClient } from "../../../src/kube/client.ts";
import { type Connection, connect } from "../../../src/kube/connection.ts";
import { KubeConfigError } from "../../../src/kube/errors.ts";
import { temporaryFolder, writeKubeconfig } from "../../support/fixtures/kubeconfig.ts";
import { startWitnessServer, type WitnessServer } from "../../support/servers/witness-server.ts";
import { MAIN, startProgram } from "../../support/terminal/program.ts";
import { startInPty } from "../../support/terminal/pty.ts";

/** After this time, rejected credentials are read again. */
const RETRY_MS = 1001;

const VERSION = "client.authentication.k8s.io/v1";
const NO_SERVER = "https://127.0.0.1:1";

const never = new AbortController().signal;

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder, "bin"));
  symlinkSync("/bin/sleep", join(folder, "bin", "sleep"));
  return () => killProgramsRunFrom(join(folder, "bin"));
});

/** A user whose plugin is this shell code. */
function user(code: string, more: object = {}): object {
  return { exec: { apiVersion: VERSION, command: "/bin/sh", args: ["-c", code], ...more } };
}

/** Shell code that prints credentials. */
function printed(status: object, more: object = {}): string {
  return `echo '${JSON.stringify({ kind: "ExecCredential", apiVersion: VERSION, status, ...more })}'`;
}

/** Shell code of a plugin that hangs in another process that it starts. */
function hangs(): string {
  return `${join(folder, "bin", "sleep")} 1000; echo too late`;
}

const running = () => programsRunFrom(join(folder, "bin")).length;
const hasStarted = () => waitFor(() => running() === 1, { what: "the plugin to start" });
const hasEnded = () => waitFor(() => running() === 0, { what: "the plugin to end" });

async function connectTo(
  server: string,
  ofUser: object,
  ...rest: [AbortSignal?, object?]
): Promise<Connection> {
  const connection = await connect(writeKubeconfig(server, { user: ofUser }), ...rest);
  onTestFinished(() => connection.close());
  return connection;
}

describe("an unusable exec plugin is reported in a sentence", () => {
  it.each<[string, object, RegExp]>([
    [
      "does not exist",
      { command: "no-such-plugin", installHint: "Install it.\n" },
      /no-such-plugin cannot be run: .*ENOENT: Install it\.$/,
    ],
    ["fails", user("echo 'log in first' >&2; exit 3"), /\/bin\/sh exited with code 3: log in first$/],
    ["is killed", user("kill -9 $$"), /was ended by SIGKILL$/],
    ["prints nothing", user(":"), /printed no ExecCredential: /],
    ["prints nonsense", user("echo nonsense"), /printed no ExecCredential: /],
    ["prints too much", user("yes"), /printed more than 1 MiB$/],
    ["prints no status", user(printed({}, { status: undefined })), /printed no ExecCredential: status: /],
    ["prints no credentials", user(printed({})), /printed neither a token nor a client certificate$/],
    [
      "prints half a certificate",
      user(printed({ clientKeyData: "x" })),
      /printed only one of clientCertificateData and/,
    ],
    [
      "prints credentials of another version",
      user(printed({ token: "t" }, { apiVersion: "client.authentication.k8s.io/v1beta1" })),
      /printed credentials of client\.authentication\.k8s\.io\/v1beta1, and the kubeconfig requests .*\/v1$/,
    ],
    [
      "needs a terminal",
      user(":", { interactiveMode: "Always" }),
      /asks for input .*standard input is not a terminal$/,
    ],
  ])("when it %s", async (_, ofUser, sentence) => {
    const full = "command" in ofUser ? user(":", ofUser) : ofUser;
    const error = await connectTo(NO_SERVER, full).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(KubeConfigError);
    expect(error).toMatchObject({
      message: expect.stringMatching(/^The kubeconfig .* has unusable credentials: its exec plugin /),
    });
    expect(error).toMatchObject({ message: expect.stringMatching(sentence) });
  });

  it("when it does not end in time, and then no process of it remains", async () => {
    const connecting = connectTo(NO_SERVER, user(hangs()), undefined, { pluginTimeoutMs: 300 });
    await expect(connecting).rejects.toThrow(/its exec plugin \/bin\/sh did not finish within 0\.3 s$/);
    await hasEnded();
  });

  it("when it ignores SIGTERM, and then no process of it remains", async () => {
    const connecting = connectTo(NO_SERVER, user(`trap '' TERM; ${hangs()}`), undefined, {
      pluginTimeoutMs: 300,
    });
    await expect(connecting).rejects.toThrow(/did not finish within 0\.3 s$/);
    await hasEnded();
  });
});

describe("an exec plugin that hangs", () => {
  it("ends with the attempt to connect, which rejects with the reason of its signal", async () => {
    const abort = new AbortController();
    const connecting = connectTo(NO_SERVER, user(hangs()), abort.signal);
    await hasStarted();
    abort.abort(new Error("enough"));
    await expect(connecting).rejects.toThrow("enough");
    await hasEnded();
  });

  it("ends when the connection is closed", async () => {
    const state = join(folder, "ran");
    const expired = printed({ token: "t", expirationTimestamp: "2000-01-01T00:00:00Z" });
    const connection = await connectTo(
      NO_SERVER,
      user(`if [ -e ${state} ]; then ${hangs()}; fi; touch ${state}; ${expired}`),
    );
    const another = connection.another();
    await hasStarted();
    await another.close();
    await hasEnded();
  });

  it.each([
    ["status", "SIGTERM", 143],
    ["status", "SIGINT", 130],
    ["doctor", "SIGTERM", 143],
    ["admin organization list", "SIGINT", 130],
    ["controller --dry-run", "SIGTERM", 143],
    ["controller", "SIGTERM", 0],
    ["api", "SIGINT", 0],
  ] as const)("ends with `%s` at a %s", async (command, signal, code) => {
    const program = startProgram([
      ...command.split(" "),
      "--kubeconfig",
      writeKubeconfig(NO_SERVER, { user: user(hangs()) }),
    ]);
    await hasStarted();
    program.signal(signal);
    expect(await program.exitCode).toBe(code);
    await hasEnded();
  });
});

describe("on a terminal, an exec plugin", () => {
  const status = (kubeconfig: string) =>
    startInPty(process.execPath, [MAIN, "status", "--kubeconfig", kubeconfig]);

  it("can ask for a password, and its messages are shown", async () => {
    const server = await startWitnessServer(certificatePair("c"), () => 403);
    const code = `printf 'Password: ' >&2; read -r answer; printf '{"kind":"ExecCredential","apiVersion":"${VERSION}","status":{"token":"%s"}}' "$answer"`;
    const pty = status(writeKubeconfig(server.url, { user: user(code) }));
    await pty.waitFor("Password: ");
    pty.write("hunter2\r");
    await pty.exitCode;
    expect(server.requests[0]?.headers).toEqual({ authorization: ["Bearer hunter2"] });
  });

  it("ends at Ctrl-C with all of its processes", async () => {
    const pty = status(writeKubeconfig(NO_SERVER, { user: user(`printf 'Waiting' >&2; ${hangs()}`) }));
    await pty.waitFor("Waiting");
    await hasStarted();
    pty.write("\x03");
    expect(await pty.exitCode).toBe(130);
    await hasEnded();
  });

  it("ends with its child processes at a SIGTERM for the program", async () => {
    const code = `${join(folder, "bin", "sleep")} 1000 & kill -TERM $PPID; wait`;
    const kubeconfig = writeKubeconfig(NO_SERVER, { user: user(code) });
    // The shell keeps the terminal open, because the end of a terminal would end all processes on it.
    const shell = `${process.execPath} ${MAIN} status --kubeconfig ${kubeconfig}; echo "code $?"; read -r line`;
    const pty = startInPty("/bin/sh", ["-c", shell]);
    await pty.waitFor("code 143");
    await hasEnded();
    pty.write("\r");
    expect(await pty.exitCode).toBe(0);
  });

  it("does not get the terminal if it must not ask", async () => {
    const code = "read -r answer || { echo no terminal >&2; exit 1; }";
    const pty = status(writeKubeconfig(NO_SERVER, { user: user(code, { interactiveMode: "Never" }) }));
    expect(await pty.exitCode).toBe(1);
    expect(pty.output()).toContain("no terminal");
  });
});

describe("credentials without an expiry", () => {
  let server: WitnessServer;
  let rejected: readonly number[];
  const runs = () => readFileSync(join(folder, "runs"), "utf8").length;
  /** Each token has the number of the run. */
  const counting = () =>
    user(
      `printf x >> ${folder}/runs; printf '{"kind":"ExecCredential","apiVersion":"${VERSION}","status":{"token":"%s"}}' $(wc -c < ${folder}/runs)`,
    );
  const tokens = () =>
    server.requests.map(({ headers }) => headers["authorization"]?.[0]?.replace(/Bearer +/, ""));

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    rejected = [];
    server = await startWitnessServer(certificatePair("c"), (request) =>
      rejected.includes(request) ? 401 : 200,
    );
    writeFileSync(join(folder, "runs"), "");
    return () => {
      vi.useRealTimers();
    };
  });

  it("are used until the API server rejects them, and then the exec plugin runs again", async () => {
    const client = new KubeClient(await connectTo(server.url, counting()));
    const call = () => client.json({ path: "/things" }).catch(() => undefined);
    await call();
    vi.advanceTimersByTime(3_600_000);
    await call();
    expect(runs()).toBe(1);
    rejected = [3, 4];
    await call();
    // A server that rejects everything does not make it run for each call.
    vi.advanceTimersByTime(RETRY_MS - 2);
    await call();
    vi.advanceTimersByTime(2);
    await call();
    expect(tokens()).toEqual(["1", "1", "1", "1", "2"]);
  });

  it("are read again after a watch was rejected, too", async () => {
    const client = new KubeClient(await connectTo(server.url, counting()));
    rejected = [1];
    await expect(client.stream({ path: "/watch", signal: never })).rejects.toMatchObject({ code: 401 });
    vi.advanceTimersByTime(RETRY_MS);
    await client.json({ path: "/things" });
    expect(tokens()).toEqual(["1", "2"]);
  });

  it("are shared by connections to the same API server", async () => {
    const connection = await connectTo(server.url, counting());
    const another = connection.another();
    onTestFinished(() => another.close());
    const clients = [new KubeClient(connection), new KubeClient(another)];
    const calls = () =>
      Promise.all(clients.map((each) => each.json({ path: "/things" }).catch(() => undefined)));
    await calls();
    rejected = [3, 4];
    await calls();
    vi.advanceTimersByTime(RETRY_MS);
    await calls();
    expect(tokens()).toEqual(["1", "1", "1", "1", "2", "2"]);
  });
});
