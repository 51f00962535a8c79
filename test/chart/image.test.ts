import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHART } from "../../deploy/chart/path.ts";
import packageJson from "../../package.json" with { type: "json" };
import { dockerfile, UnpackedImage } from "./image.ts";

describe("the image", { timeout: 60_000 }, () => {
  let image: UnpackedImage;
  beforeAll(async () => {
    image = await UnpackedImage.build();
  }, 60_000);
  afterAll(() => image[Symbol.dispose]());

  async function runImage(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const child = image.start({ args }, env);
    const [out, err] = [child.stdout, child.stderr].map((stream) => (stream ? text(stream) : ""));
    const code = new Promise<number | null>((resolve) => child.once("close", resolve));
    return { out: await out, err: await err, code: await code };
  }

  it("holds the program, its license, and the licenses of the packages in it", () => {
    expect(readdirSync(image.folder).sort()).toEqual([
      "LICENSE",
      "THIRD-PARTY-LICENSES.txt",
      "chunks",
      "docs",
      "kubectl-pipes.mjs",
      "kubectl_complete-pipes",
      "pipe-scaling.mjs",
    ]);
  });

  it("holds programs that kubectl and krew can execute", () => {
    for (const name of ["pipe-scaling.mjs", "kubectl-pipes.mjs", "kubectl_complete-pipes"]) {
      expect(statSync(join(image.folder, name)).mode & 0o111, name).toBe(0o111);
    }
  });

  it("holds what everyone can read, but only its owner can replace or remove", () => {
    for (const entry of [".", ...readdirSync(image.folder, { recursive: true, encoding: "utf8" })]) {
      const { mode } = statSync(join(image.folder, entry));
      expect(mode & 0o666, entry).toBe(0o644);
    }
  });

  it("runs its entry point without warnings, as a user without write permission", async () => {
    expect(await runImage(["--version"])).toEqual({ out: `${packageJson.version}\n`, err: "", code: 0 });
  });

  it.each(["api", "controller"])("runs the %s, which reports a missing kubeconfig", async (name) => {
    const { err, code } = await runImage([name], { PIPE_SCALING_KUBECONFIG: "/none" });
    expect(err).toMatch(/^The kubeconfig \/none does not exist/);
    expect(code).toBe(1);
  });

  it("is built with the Node.js version of the tests", () => {
    const node = packageJson.devDependencies.node;
    expect(dockerfile()).toContain(`FROM --platform=$BUILDPLATFORM node:${node}-`);
    expect(dockerfile()).toContain(`/nodejs${node.split(".")[0]}-`);
  });

  it("is built on base images with a tag for people and a digest", () => {
    const bases = [...dockerfile().matchAll(/^FROM (?:--platform=\S+ )?(\S+)/gm)].map(([, base]) => base);
    expect(bases).toHaveLength(2);
    for (const base of bases) expect(base).toMatch(/^\S+:\S+@sha256:[0-9a-f]{64}$/);
  });

  it("has the version and the user of the chart", () => {
    const chart = readFileSync(`${CHART}/Chart.yaml`, "utf8");
    expect(chart).toContain(`appVersion: ${packageJson.version}\n`);
    const [, user] = /^USER (\d+):\1$/m.exec(dockerfile()) ?? [];
    expect(readFileSync(`${CHART}/values.yaml`, "utf8")).toContain(`runAsUser: ${user}\n`);
  });
});
