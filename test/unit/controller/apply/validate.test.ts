import { describe, expect, it } from "vitest";
import { validate } from "../../../../src/controller/apply/validate.ts";
import { Validations } from "../../../../src/controller/apply/validations.ts";
import { WriteHistory } from "../../../../src/controller/apply/write-history.ts";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { aPipe, aRollout } from "../../../support/fixtures/snapshot.ts";

/** A dry run of four cores that has not been answered. */
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
  const refuse = () => {
    response.reject(new KubeApiError("PATCH /pipe", 422, JSON.stringify({ message: "no" })));
    return ended;
  };
  return { pipes, pipe, clock, writes, validations, refuse };
}

describe("a slow dry run", () => {
  it("does not replace the record of a write that began after it", async () => {
    const { clock, writes, refuse } = begin();
    writes.begin("uid-a", "resize", aRollout(sizeOfCores(2)), clock.now());
    await refuse();
    expect(writes.records.get("uid-a")).toMatchObject({ size: "2000m/8Gi", outcome: { type: "pending" } });
  });

  it("does not replace a dry run that began after it", async () => {
    const { writes, validations, refuse } = begin();
    validations.begin("uid-a", "2/2000m/8Gi");
    await refuse();
    expect(validations.records.get("uid-a")).toEqual({ key: "2/2000m/8Gi", isPending: true });
    expect(writes.records.size).toBe(0);
  });

  it("leaves no record of a Deployment that was deleted meanwhile", async () => {
    const { pipes, pipe, writes, validations, refuse } = begin();
    pipes.remove({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "2" } });
    await refuse();
    expect([writes.records.size, validations.records.size]).toEqual([0, 0]);
  });
});
