import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, describe, expect, it } from "vitest";
import type { PipeFailure } from "../../../src/crd/pipe-scaling.ts";
import {
  AdmissionWebhook,
  allow,
  deny,
  type Reviewed,
  reviewedKind,
} from "../../support/servers/admission-webhook.ts";
import { resourcesOf } from "../../support/test-environment.ts";
import { type HeldService, HeldServices, PIPE } from "./held-services.ts";

/** Another pipe of the service. It has no pods, so it gets every size at once. */
const IDLE = "idle";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function start(): Promise<HeldService> {
  // Nothing is held.
  const held = await HeldServices.start({ steps: ["pause"] });
  ends.push(() => held.end());
  const [service] = held.services;
  if (!service) throw new Error("there is no service");
  await service.environment.createPipe({ name: IDLE, cores: 1, replicas: 0 });
  await service.settled(1);
  return service;
}

/** Waits for the failure of the pipe in the status after this number of attempts. */
function reportedFailure({ environment }: HeldService, attempts: number): Promise<PipeFailure> {
  const read = async () => {
    const { failures = [] } = (await environment.scaling()).status ?? {};
    return failures.find((each) => each.pipe === PIPE && each.attempts >= attempts);
  };
  return waitFor(read, { what: `the status to report ${attempts} attempts`, intervalMs: 20 });
}

describe("while a webhook is out of order that reviews", () => {
  it.each<[Reviewed, string]>([
    ["deployments", "2/2"],
    ["replicasets", "2/2"],
    ["pods/resize", "1/2"],
  ])(
    "%s, the write is repeated a few times however busy the service is, and nothing restarts",
    async (kind, summary) => {
      const service = await start();
      const { environment } = service;
      const kinds = [...new Set<Reviewed>(["deployments", kind])];
      const webhook = await AdmissionWebhook.start(
        environment,
        "ValidatingWebhookConfiguration",
        PIPE,
        kinds,
      );
      ends.push(() => webhook.end());
      let denied = 0;
      webhook.respond = (request) => {
        if (reviewedKind(request) !== kind || !request.name.startsWith(PIPE)) return allow();
        denied += 1;
        return deny(500, "out of order")();
      };
      await environment.requestSize(2);
      const hasSize = async () => resourcesOf(await environment.pipe(IDLE)) === "2 8Gi 8Gi";
      await waitFor(hasSize, { what: "the other pipe to have the size" });
      const stop = keepBusy(service);
      const failure = await reportedFailure(service, 4);
      // One more attempt may have begun since then.
      expect(denied - failure.attempts).toBeLessThanOrEqual(1);
      await stop();
      expect(failure).toMatchObject({ reason: "WriteFailed", nextRetryAt: expect.any(String) });
      expect(failure.message).toContain("out of order");
      const { pipes } = (await environment.scaling()).status ?? {};
      expect(pipes?.summary, JSON.stringify(pipes)).toBe(summary);
      webhook.respond = allow;
      await service.settled(2);
      await service.expectNoRestart();
    },
  );
});

/** Changes the other pipe all the time, so that the service is reconciled again and again. */
function keepBusy({ environment }: HeldService): () => Promise<void> {
  let isEnding = false;
  const run = async () => {
    for (let count = 0; !isEnding; count += 1)
      await environment.patchPipe(IDLE, { spec: { minReadySeconds: count % 100 } });
  };
  const running = run();
  return () => {
    isEnding = true;
    return running;
  };
}
