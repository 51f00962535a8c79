import { describe, expect, it } from "vitest";
import { validate } from "../../../../src/controller/apply/validate.ts";
import { Validations } from "../../../../src/controller/apply/validations.ts";
import { WriteHistory } from "../../../../src/controller/apply/write-history.ts";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { aPipe, aRollout } from "../../../support/fixtures/snapshot.ts";

/** A dry run of four cores that is still waiting for its response. */
function begin() {
  const { pipes } = createCaches();
  const response = Promise.withResolvers<never>();
  const clock = new FakeClock();
  const [writes, validations] = [new WriteHistory(pipes), new Validations(pipes)];
  const pipe = aPipe("a");
  pipes.apply(pipe);
  const client = { json: () => response.promise };
  const nodes = { list: () => Promise.resolve([]) };
  const rollout = aRollout(sizeOfCores(4));
  const ended = validate(
    { client, clock, writes, validations, nodes },
    { type: "validate", checksNodes: false, pipe, container: "pipe", rollout },
  );
  const reject = (code = 422, message = "no") => {
    response.reject(new KubeApiError("PATCH /pipe", code, JSON.stringify({ message })));
    return ended;
  };
  return { pipes, pipe, clock, writes, validations, reject };
}

describe("a slow dry run", () => {
  it("does not replace the record of a write that started after it", async () => {
    const { clock, writes, reject } = begin();
    writes.begin("uid-a", "resize", aRollout(sizeOfCores(2)), clock.now());
    await reject();
    expect(writes.records.get("uid-a")).toMatchObject({ size: "2000m/8Gi", outcome: { type: "pending" } });
  });

  it("does not replace a dry run that started after it", async () => {
    const { writes, validations, reject } = begin();
    validations.begin("uid-a", "2/2000m/8Gi");
    await reject();
    expect(validations.records.get("uid-a")).toEqual({ key: "2/2000m/8Gi", isPending: true });
    expect(writes.records.size).toBe(0);
  });

  it("leaves no record if the Deployment was deleted in the meantime", async () => {
    const { pipes, pipe, writes, validations, reject } = begin();
    pipes.remove({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "2" } });
    await reject();
    expect([writes.records.size, validations.records.size]).toEqual([0, 0]);
  });
});

describe("a dry run", () => {
  const denied = 'admission webhook "pipes.example.com" denied the request: too many';

  it("predicts nothing if a webhook responds with 429, so that the resize shows the outcome", async () => {
    const { pipe, writes, validations, reject } = begin();
    await reject(429, denied);
    expect(validations.records.get(pipe.metadata.uid)?.isPending).toBe(false);
    expect(writes.records.size).toBe(0);
  });

  it("is a refusal if a webhook responds with 409", async () => {
    const { writes, reject } = begin();
    await reject(409, denied);
    expect(writes.records.get("uid-a")?.outcome).toMatchObject({
      type: "failed",
      error: { reason: "Refused", message: denied },
    });
  });

  it("is repeated if the API server is busy", async () => {
    const { validations, reject } = begin();
    await expect(reject(429, "too many requests")).rejects.toThrow("too many requests");
    expect(validations.records.size).toBe(0);
  });
});
