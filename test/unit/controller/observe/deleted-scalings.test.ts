import { describe, expect, it } from "vitest";
import { DeletedScalings } from "../../../../src/controller/observe/deleted-scalings.ts";
import type { PipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { aScaling } from "../../../support/fixtures/snapshot.ts";

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
  it("drops each one 10 minutes after its grace period", async () => {
    const { clock, deleted, remove } = setup();
    remove("a");
    await clock.advance(630_000);
    expect(deleted.find("pipes", "a")?.spec).toEqual(aScaling(4).spec);
    await clock.advance(1);
    expect(deleted.find("pipes", "a")).toBeUndefined();
  });

  it("has a spec that may be outdated if only a list shows the deletion", () => {
    const { deleted, remove, scalings } = setup();
    remove("seen");
    scalings.apply(aScaling(4));
    scalings.replace(scalings.beginList("pipes"), new Map(), "100");
    expect(deleted.find("pipes", "seen")?.isOutdated).toBe(false);
    expect(deleted.find("pipes", aScaling(4).metadata.name)?.isOutdated).toBe(true);
  });

  it("has a spec that may be outdated if the watch was interrupted after the deletion", () => {
    const { deleted, remove, scalings } = setup();
    remove("a");
    scalings.interrupted();
    remove("b");
    expect(deleted.find("pipes", "a")?.isOutdated).toBe(true);
    expect(deleted.find("pipes", "b")?.isOutdated).toBe(false);
  });

  it("lets the owner create one again for 30 s after its deletion, or after work begins if that was not seen", async () => {
    const { clock, deleted, remove } = setup();
    const waitMs = (name: string) => deleted.recreateAtMs("pipes", name) - clock.now();
    deleted.begin();
    expect(waitMs("unseen")).toBe(30_000);
    await clock.advance(20_000);
    remove("seen");
    expect([waitMs("seen"), waitMs("unseen")]).toEqual([30_000, 10_000]);
  });

  it("keeps the last 1000", () => {
    const { deleted, remove } = setup();
    for (let index = 0; index <= 1000; index += 1) remove(`${index}`);
    expect(deleted.find("pipes", "0")).toBeUndefined();
    expect(deleted.find("pipes", "1")).toBeDefined();
  });
});
