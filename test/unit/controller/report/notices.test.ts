import { describe, expect, it } from "vitest";
import type { PipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import { Notices } from "../../../../src/controller/report/notices.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { aScaling } from "../../../support/fixtures/snapshot.ts";

describe("a notice about an object that the controller does not manage", () => {
  const foreign = aScaling(4);

  function setup() {
    const store = new Store<PipeScalingView>();
    store.apply(foreign);
    const notices = new Notices([store]);
    notices.add(foreign, "UnknownService");
    return { store, notices };
  }

  it("is new until it is reported, and new again if its text changes", () => {
    const { notices } = setup();
    expect(notices.isNew(foreign, "UnknownService")).toBe(false);
    expect(notices.isNew(foreign, "MalformedRecord")).toBe(true);
  });

  it("is new again after the object was managed in between", () => {
    const { notices } = setup();
    notices.forget(foreign);
    expect(notices.isNew(foreign, "UnknownService")).toBe(true);
  });

  it("is forgotten when its object is deleted", () => {
    const { store, notices } = setup();
    store.remove({ ...foreign, metadata: { ...foreign.metadata, resourceVersion: "2" } });
    expect(notices.isNew(foreign, "UnknownService")).toBe(true);
  });
});
