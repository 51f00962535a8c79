import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import packageJson from "../../package.json" with { type: "json" };
import { install, prepareRelease, type Release, remove } from "./accounts.ts";
import { ContainerImage, obstacleToContainers } from "./container-image.ts";
import { entrypoint } from "./image.ts";
import { PodProcess } from "./pod-process.ts";

const DEFINITION = new URL("../../crds/pipes.clouddb.dev_pipescalings.yaml", import.meta.url);

/** Half a minute on an idle machine. */
const BUILD_MS = 300_000;

/** Prints what the process may do. */
const PROBE = `
  const { readFileSync, writeFileSync } = require("node:fs");
  const status = readFileSync("/proc/self/status", "utf8");
  const value = (name) => new RegExp("^" + name + ":\\\\s*(\\\\S+)$", "m").exec(status)[1];
  let write = "possible";
  try { writeFileSync("/app/new", ""); } catch ({ code }) { write = code; }
  console.log(JSON.stringify({
    uid: process.getuid(), gid: process.getgid(), cwd: process.cwd(), pid: process.pid, write,
    capabilities: ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map((name) => parseInt(value(name), 16)),
    noNewPrivileges: value("NoNewPrivs"),
  }));
`;

describe("the image that buildah builds from deploy/Dockerfile", () => {
  const obstacle = obstacleToContainers();
  let image: ContainerImage;
  beforeAll(async () => {
    if (obstacle === undefined) image = await ContainerImage.build();
  }, BUILD_MS);
  beforeEach(({ skip }) => skip(obstacle !== undefined, obstacle));
  afterAll(() => image?.[Symbol.dispose]());

  async function outputOf(command: readonly string[] | undefined, args?: readonly string[]) {
    const child = image.start({ command, ...(args ? { args } : {}) }, {});
    const [out, err] = [child.stdout, child.stderr].map((stream) => (stream ? text(stream) : ""));
    const code = new Promise<number | null>((resolve) => child.once("close", resolve));
    return { out: await out, err: await err, code: await code };
  }

  it("has the program, its licenses and labels with its metadata", () => {
    expect(readdirSync(join(image.folder, "app")).sort()).toEqual([
      "LICENSE",
      "THIRD-PARTY-LICENSES.txt",
      "chunks",
      "docs",
      "kubectl-pipes.mjs",
      "kubectl_complete-pipes",
      "pipe-scaling.mjs",
    ]);
    expect(image.annotations).toMatchObject({
      "org.opencontainers.image.title": packageJson.name,
      "org.opencontainers.image.version": packageJson.version,
      "org.opencontainers.image.licenses": packageJson.license,
      "org.opencontainers.image.exposedPorts": "8080/tcp,9090/tcp",
    });
  });

  it("prints the help without arguments, and its version", async () => {
    expect(await outputOf(undefined)).toMatchObject({ out: expect.stringMatching(/^Usage:/), code: 0 });
    expect(await outputOf(undefined, ["--version"])).toEqual({
      out: `${packageJson.version}\n`,
      err: "",
      code: 0,
    });
  });

  it("runs as its user, who has no capabilities and cannot write", async () => {
    const [node] = entrypoint();
    const { out } = await outputOf([node, "-e", PROBE], []);
    expect(JSON.parse(out ?? "")).toEqual({
      uid: 65_532,
      gid: 65_532,
      cwd: "/app",
      pid: 1,
      write: "EROFS",
      capabilities: [0, 0, 0, 0, 0],
      noNewPrivileges: "1",
    });
  });

  describe("with the pods of a release", () => {
    let cluster: Cluster;
    let release: Release;
    beforeAll(async () => {
      if (obstacle !== undefined) return;
      cluster = await sharedCluster();
      release = await prepareRelease(cluster);
      await apply(cluster, [parse(readFileSync(DEFINITION, "utf8"))]);
      await install(cluster, release, "--set", "crds.enabled=false,api.config.drainDelay=0s");
    });
    afterAll(async () => {
      if (release) await remove(cluster, release);
    });

    it.each(["api", "controller"] as const)(
      "runs the %s, which ends with 0 at SIGTERM",
      async (component) => {
        const pod = await PodProcess.start(image, cluster, release, component);
        try {
          expect((await fetch(`${pod.opsUrl}/metrics`)).status).toBe(200);
          if (component === "api") expect((await fetch(`${pod.url}/v1/organizations`)).status).toBe(401);
        } finally {
          expect(await pod.stop()).toBe(0);
        }
      },
    );
  });
});
