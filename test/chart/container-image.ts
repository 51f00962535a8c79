import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import * as z from "zod";
import packageJson from "../../package.json" with { type: "json" };
import { endedAtExit, makeMount, type RunnableImage } from "./image.ts";

const BUILD = fileURLToPath(new URL("build-image.sh", import.meta.url));

const PROGRAMS = ["buildah", "runc", "umoci"];

/** Why this machine cannot build and run the image; undefined if it can. */
export function obstacleToContainers(): string | undefined {
  if (process.getuid?.() !== 0) return "only root can build and run containers without a container engine";
  const missing = PROGRAMS.filter((name) => spawnSync(name, ["--version"]).error !== undefined);
  return missing.length === 0 ? undefined : `${missing.join(" and ")} must be installed`;
}

/** The configuration of a container for runc, as umoci derives it from the configuration of the image. */
const bundleConfig = z.looseObject({
  process: z.looseObject({ args: z.array(z.string()), env: z.array(z.string()) }),
  mounts: z.array(z.looseObject({})),
  annotations: z.record(z.string(), z.string()),
  linux: z.looseObject({ namespaces: z.array(z.object({ type: z.string() })) }),
});

/**
 * The image that deploy/Dockerfile describes, on stand-ins for its base images. Its containers have the restrictions of
 * the pods of the chart, and the network of this machine.
 */
export class ContainerImage implements RunnableImage, Disposable {
  readonly #dir: string;
  readonly #config: z.output<typeof bundleConfig>;
  readonly #mounts: string[] = [];

  private constructor(dir: string) {
    this.#dir = dir;
    this.#config = bundleConfig.parse(JSON.parse(readFileSync(join(dir, "bundle", "config.json"), "utf8")));
  }

  static async build(): Promise<ContainerImage> {
    const dir = mkdtempSync(join(tmpdir(), "pipe-scaling-container-"));
    const { code, stdout, stderr } = await run(BUILD, [dir, process.execPath, packageJson.version], {
      env: environment,
    });
    if (code !== 0) throw new Error(`${BUILD} exited with ${code}: ${stdout}${stderr}`);
    return new ContainerImage(dir);
  }

  /** The root file system. */
  get folder(): string {
    return join(this.#dir, "bundle", "rootfs");
  }

  get annotations(): Readonly<Record<string, string>> {
    return this.#config.annotations;
  }

  /** Containers that start later can read it at the same path, unless it was removed. */
  makeMount(): string {
    const mount = makeMount();
    this.#mounts.push(mount);
    return mount;
  }

  start(
    { command, args }: Parameters<RunnableImage["start"]>[0],
    env: Readonly<Record<string, string>>,
  ): ChildProcess {
    const { process, mounts, linux, ...config } = this.#config;
    const [node = "", program = "", ...standard] = process.args;
    const id = randomUUID();
    const bundle = join(this.#dir, id);
    mkdirSync(bundle);
    const bound = this.#mounts.filter(existsSync).map((path) => ({
      destination: path,
      source: path,
      type: "bind",
      options: ["rbind", "ro"],
    }));
    const restricted = {
      ...config,
      process: {
        ...process,
        args: [...(command ?? [node, program]), ...(args ?? standard)],
        env: [...process.env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)],
        terminal: false,
        capabilities: {},
        noNewPrivileges: true,
      },
      root: { path: this.folder, readonly: true },
      mounts: [...mounts, ...bound],
      linux: { ...linux, namespaces: linux.namespaces.filter(({ type }) => type !== "network") },
    };
    writeFileSync(join(bundle, "config.json"), JSON.stringify(restricted));
    const flags = ["--root", join(this.#dir, "runc"), "run", "--bundle", bundle, id];
    // runc passes the signal on to the container.
    return endedAtExit(spawn("runc", flags, { stdio: ["ignore", "pipe", "pipe"] }), "SIGTERM");
  }

  [Symbol.dispose](): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
