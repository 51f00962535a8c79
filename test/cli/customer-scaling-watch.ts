import { reservePorts } from "@pipe-scaling/local-cluster/ports";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { setUpEnvironment } from "../api/fixtures.ts";
import { type SpawnedApi, spawnApi } from "../api/spawned-api.ts";
import { progressingTo, refusedAt, reportStatus, scaledTo } from "../api/statuses.ts";
import type { KeyRecord } from "../support/fixtures/records.ts";
import type { RunningProgram } from "../support/terminal/program.ts";
import type { Pty } from "../support/terminal/pty.ts";
import { accessTo, serviceOf, start, textOf, type Way } from "./run-command.ts";

/** Watches rescales through the API. The tests write the statuses in place of the controller. */
export function describeWatches(way: Way): void {
  const environment = setUpEnvironment("cli-watch");
  let api: SpawnedApi;
  let organizationId: string;
  let admin: KeyRecord;
  let service: string;

  beforeAll(async () => {
    organizationId = await environment.addOrganization();
    admin = await environment.addKey({ organizationId });
    // Without flags, the API has the default rate limits, which must suffice for a watch.
    api = await spawnApi(environment, { flags: [] });
  });

  afterAll(() => api?.stop());

  beforeEach(async () => {
    // Each test has a separate key, so that other tests do not use up its rate limit.
    admin = await environment.addKey({ organizationId });
    service = await serviceOf(environment, api.send, {
      organizationId,
      authorization: admin.authorization,
      cores: 1,
    });
  });

  /** Requests a size independently of the program. Returns the request ID. */
  async function request(cores: number): Promise<string> {
    const { status, headers } = await api.send({
      method: "PATCH",
      path: `/v1/organizations/${organizationId}/services/${service}/pipesCdcScaling`,
      authorization: admin.authorization,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ replicaCpuMillicores: cores * 1000 }),
    });
    expect(status).toBe(200);
    return headers["x-request-id"] ?? "";
  }

  function watch(words: string, url = api.url): RunningProgram | Pty {
    return start(way, ["scaling", ...words.split(" "), "--watch"], accessTo(url, admin));
  }

  /** Removes whitespace, because a terminal wraps lines at its width. */
  function squeezed(text: string): string {
    return text.replace(/\s/g, "");
  }

  /** Starts a rescale to 4 cores and watches it. Returns the request ID. */
  async function rescale(url?: string): Promise<{ running: RunningProgram | Pty; requestId: string }> {
    const running = watch(`set ${service} --cores 4`, url);
    const accepted = /Accepted: 4 cpu \/ 16 Gi \(request ([0-9a-f-]{36})\)/;
    await running.waitFor(accepted);
    const [, requestId = ""] = accepted.exec(textOf(running)) ?? [];
    return { running, requestId };
  }

  describe(`${way}, a watch`, () => {
    it("follows the rescale until it completes, and ends with exit code 0", async () => {
      const { running, requestId } = await rescale();
      await running.waitFor("its progress is not known yet");
      await reportStatus(environment, service, progressingTo(4, 1, requestId));
      await running.waitFor("1/3 pipes");
      await reportStatus(environment, service, scaledTo(4, requestId));
      expect(await running.exitCode).toBe(0);
      expect(textOf(running)).toMatch(/Every pipe runs the size/);
    });

    it("ends with exit code 3 after a failure, and names the pipe", async () => {
      const { running, requestId } = await rescale();
      await reportStatus(environment, service, refusedAt(4, 1, requestId));
      expect(await running.exitCode).toBe(3);
      expect(textOf(running)).toMatch(/orders.*This size is not allowed for the pipe/);
      expect(textOf(running)).not.toMatch(/quota|worker-7/);
    });

    it("ends with exit code 130 after Ctrl-C, and reports that the rescale continues", async () => {
      const { running } = await rescale();
      await running.waitFor("its progress is not known yet");
      if ("write" in running) running.write("\x03");
      else running.signal("SIGINT");
      expect(await running.exitCode).toBe(130);
      expect(squeezed(textOf(running))).toContain(squeezed("The rescale continues. To watch it:"));
      if ("screen" in running) expect(running.screen().isCursorShown).toBe(true);
      expect((await environment.scaling(service)).spec).toMatchObject({ replicaCpuMillicores: 4000 });
    });

    it("ends with exit code 4 after its timeout", async () => {
      await request(4);
      const running = watch(`get ${service} --timeout 3s`);
      expect(await running.exitCode).toBe(4);
      expect(textOf(running)).toContain("The watch timed out after 3 s");
    });

    it("survives a restart of the API", async () => {
      // The port is reserved, so that no concurrent test uses it during the restart.
      const { ports, release } = await reservePorts();
      onTestFinished(release);
      const port = ports.apiServer;
      const mortal = await spawnApi(environment, { port, flags: [] });
      onTestFinished(mortal.stop);
      const { running, requestId } = await rescale(mortal.url);
      await running.waitFor("its progress is not known yet");
      await mortal.stop();
      // A terminal wraps the line, and each part has colors at both ends.
      await running.waitFor(/Trying[^a]*again/);
      await reportStatus(environment, service, scaledTo(4, requestId));
      const next = await spawnApi(environment, { port, flags: [] });
      onTestFinished(next.stop);
      expect(await running.exitCode).toBe(0);
      expect(textOf(running)).toMatch(/Every pipe runs the size/);
    });

    it("ends with exit code 1 if another request supersedes its own", async () => {
      const { running } = await rescale();
      await running.waitFor("its progress is not known yet");
      const other = await request(8);
      await reportStatus(environment, service, scaledTo(8, other));
      expect(await running.exitCode).toBe(1);
      expect(squeezed(textOf(running))).toContain(
        squeezed(`Another request, ${other}, set another size (8 cpu / 32 Gi): your request was superseded.`),
      );
    });
  });
}
