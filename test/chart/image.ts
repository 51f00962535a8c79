import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { atExit } from "@pipe-scaling/local-cluster/at-exit";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import * as z from "zod";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export function dockerfile(): string {
  return readFileSync(join(ROOT, "deploy", "Dockerfile"), "utf8");
}

export function entrypoint(): readonly [node: string, program: string] {
  const [, json = ""] = /^ENTRYPOINT (.*)$/m.exec(dockerfile()) ?? [];
  return z.tuple([z.string(), z.string()]).parse(JSON.parse(json));
}

/** User and group of the image. They are used only if the tests run as root, because only root can change users. */
const { uid, gid } = (() => {
  const [, user, group] = /^USER (\d+):(\d+)$/m.exec(dockerfile()) ?? [];
  return process.getuid?.() === 0 ? { uid: Number(user), gid: Number(group) } : {};
})();

/** Creates a folder whose files only the user of the image can read, like the mounts of a pod. */
export function makeMount(): string {
  const mount = mkdtempSync(join(tmpdir(), "pipe-scaling-mount-"));
  if (uid !== undefined && gid !== undefined) chownSync(mount, uid, gid);
  return mount;
}

/** Ends a process of an image with the tests, also after Ctrl-C. */
export function endedAtExit(started: ChildProcess, signal: NodeJS.Signals): ChildProcess {
  started.once(
    "exit",
    atExit(() => started.kill(signal)),
  );
  return started;
}

export interface RunnableImage {
  /** Creates a folder that processes of the image can read. */
  makeMount(): string;
  /** Starts the process of a container: `args` after `command`, or after the entry point of the image. */
  start(
    container: { readonly command?: readonly string[] | undefined; readonly args?: readonly string[] },
    env: Readonly<Record<string, string>>,
  ): ChildProcess;
}

/**
 * The content of the image, for machines without a container engine: Node and the output of the Dockerfile's build
 * step, in a read-only folder outside of any package. container-image.ts builds the whole image.
 */
export class UnpackedImage implements RunnableImage, Disposable {
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
  }

  static async build(): Promise<UnpackedImage> {
    const dir = mkdtempSync(join(tmpdir(), "pipe-scaling-image-"));
    const [node] = entrypoint();
    mkdirSync(join(dir, dirname(node)), { recursive: true });
    copyFileSync(process.execPath, join(dir, node));
    chmodSync(dir, 0o755);
    const { code, stderr } = await run(join(ROOT, "deploy", "image", "build.sh"), [join(dir, "app")], {
      env: environment,
    });
    if (code !== 0) throw new Error(`deploy/image/build.sh exited with ${code}: ${stderr}`);
    return new UnpackedImage(dir);
  }

  get folder(): string {
    return join(this.#dir, "app");
  }

  makeMount(): string {
    return makeMount();
  }

  start(
    { command = entrypoint(), args = [] }: Parameters<RunnableImage["start"]>[0],
    env: Readonly<Record<string, string>>,
  ): ChildProcess {
    const [program = "", ...own] = command.map((part) =>
      part.startsWith("/") ? join(this.#dir, part) : part,
    );
    const started = spawn(program, [...own, ...args], {
      cwd: this.folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      ...(uid === undefined || gid === undefined ? {} : { uid, gid }),
    });
    return endedAtExit(started, "SIGKILL");
  }

  [Symbol.dispose](): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
