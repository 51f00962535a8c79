import { describe, expect, it } from "vitest";
import { DeletedScalings } from "../../../../src/controller/observe/deleted-objects.ts";
import type { PipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { aScaling } from "../../../support/fixtures/snapshot.ts";

const HOUR_MS = 3_600_000;

function setup() {
  const scalings = new Store<PipeScalingView>();
  const clock = new FakeClock();
  const deleted = new DeletedScalings(scalings, clock, TIMEOUTS.recreateMs);
  let version = 0;
  const remove = (name: string) => {
    const versioned = () => {
      version += 1;
      const { metadata, ...scaling } = aScaling(4);
      return { ...scaling, metadata: { ...metadata, name, resourceVersion: `${version}` } };
    };
    scalings.apply(versioned());
    scalings.remove(versioned());
  };
  return { clock, deleted, remove, scalings };
}

describe("the record of deleted PipeScalings", () => {
  it("lets the owner create one again for 30 s after its deletion, or after work begins if that was not seen", async () => {
    const { clock, deleted, remove } = setup();
    const waitMs = (name: string) => deleted.recreation("pipes", name).atMs - clock.now();
    deleted.begin();
    expect(waitMs("unseen")).toBe(30_000);
    await clock.advance(20_000);
    remove("seen");
    expect([waitMs("seen"), waitMs("unseen")]).toEqual([30_000, 10_000]);
  });

  it.each([
    ["ahead", HOUR_MS],
    ["back", -HOUR_MS],
  ])("waits for as long if the clock jumps an hour %s meanwhile", async (_, jumpMs) => {
    const { clock, deleted, remove } = setup();
    const waitMs = (name: string) => deleted.recreation("pipes", name).atMs - clock.now();
    deleted.begin();
    remove("seen");
    await clock.advance(10_000);
    clock.jump(jumpMs);
    expect([waitMs("seen"), waitMs("unseen")]).toEqual([20_000, 20_000]);
  });

  it("keeps the last 1000", () => {
    const { deleted, remove } = setup();
    for (let index = 0; index <= 1000; index += 1) remove(`${index}`);
    expect(deleted.recreation("pipes", "0").isSeen).toBe(false);
    expect(deleted.recreation("pipes", "1").isSeen).toBe(true);
  });
});
