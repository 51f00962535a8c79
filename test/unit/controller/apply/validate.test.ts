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
  const reject = () => {
    response.reject(new KubeApiError("PATCH /pipe", 422, JSON.stringify({ message: "no" })));
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
