import { describe, expect, it } from "vitest";
import { compareResourceVersions } from "../../src/runtime/resource-version.ts";
import { type Change, Store } from "../../src/runtime/store.ts";

interface Thing {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
  readonly colour: string;
}

function thing(name: string, version: number, { uid = "1", colour = "red", namespace = "ns" } = {}): Thing {
  return { metadata: { name, namespace, uid, resourceVersion: String(version) }, colour };
}

function setup() {
  const store = new Store<Thing>({ colour: (each) => [each.colour] });
  const changes: string[] = [];
  store.onChange((change: Change<Thing>) => {
    const object = change.type === "deleted" ? change.previous : change.object;
    changes.push(`${change.type} ${object.metadata.name}@${object.metadata.resourceVersion}`);
  });
  return { store, changes };
}

function list(store: Store<Thing>, version: number, objects: Thing[], namespace?: string) {
  store.replace(store.beginList(namespace), objects, String(version));
}

describe("a store", () => {
  it("finds by name and by index, also after a change of what is indexed", () => {
    const { store } = setup();
    store.apply(thing("a", 1));
    store.apply(thing("b", 2));
    store.apply(thing("a", 3, { colour: "blue" }));
    expect(store.get("ns/a")?.colour).toBe("blue");
    expect(store.by("colour", "red").map((each) => each.metadata.name)).toEqual(["b"]);
    expect(store.by("colour", "blue").map((each) => each.metadata.name)).toEqual(["a"]);
    expect(store.by("colour", "green")).toEqual([]);
  });

  it("does not go back to an older version when a watch is late", () => {
    const { store, changes } = setup();
    store.observe(thing("a", 10));
    store.apply(thing("a", 9));
    store.apply(thing("a", 10));
    store.remove(thing("a", 8));
    expect(changes).toEqual(["added a@10"]);
  });

  it("knows the versions that its own writes made until the watch has come to them", () => {
    const { store } = setup();
    store.observe(thing("a", 5));
    expect([store.isOurs("5"), store.isOurs("6")]).toEqual([true, false]);
    store.passOurs("5");
    expect(store.isOurs("5")).toBe(false);
    // It counts as told: what was deleted by then does not come back.
    store.observe(thing("b", 4));
    expect(store.get("ns/b")).toBeUndefined();
  });

  it("keeps no version that the watch has told all the same, as it does of what was made anew", () => {
    const { store } = setup();
    store.observe(thing("a", 5));
    store.apply(thing("a", 5));
    expect(store.isOurs("5")).toBe(false);
  });

  it("does not take for its own what the watch told first, or what a new history may have made", () => {
    const { store } = setup();
    store.apply(thing("a", 5));
    store.observe(thing("a", 5));
    expect(store.isOurs("5")).toBe(false);
    store.observe(thing("a", 7));
    list(store, 3, []);
    expect(store.isOurs("7")).toBe(false);
  });

  it("tells of each change whether a write of ours made it", () => {
    const { store } = setup();
    const ours: boolean[] = [];
    store.onChange(({ isOurs }) => ours.push(isOurs));
    store.observe(thing("a", 5));
    store.apply(thing("a", 6));
    store.observe(thing("a", 7));
    store.remove(thing("a", 8));
    expect(ours).toEqual([true, false, true, false]);
  });

  it("tells an object that was deleted and made again as both", () => {
    const { store, changes } = setup();
    store.apply(thing("a", 1));
    store.apply(thing("a", 5, { uid: "2" }));
    expect(changes).toEqual(["added a@1", "deleted a@1", "added a@5"]);
  });

  it("takes a list as the truth: what is missing is deleted, what is older counts", () => {
    const { store, changes } = setup();
    list(store, 10, [thing("a", 9), thing("b", 8), thing("c", 7)]);
    list(store, 5, [thing("a", 3), thing("b", 8), thing("c", 4, { uid: "2" })]);
    expect(changes.slice(3)).toEqual(["updated a@3", "deleted c@7", "added c@4"]);
    list(store, 6, []);
    expect(store.size).toBe(0);
  });

  it("keeps a write of ours that a list in flight could not know", () => {
    const { store } = setup();
    store.apply(thing("a", 1));
    const inFlight = store.beginList(undefined);
    store.observe(thing("a", 12, { colour: "blue" }));
    store.observe(thing("new", 13));
    store.replace(inFlight, [thing("a", 1)], "11");
    expect(store.get("ns/a")?.colour).toBe("blue");
    expect(store.get("ns/new")).toBeDefined();
  });

  it("does not bring back what was deleted before the answer to our write came", () => {
    const { store } = setup();
    store.apply(thing("a", 1));
    store.remove(thing("a", 3));
    store.observe(thing("a", 2));
    list(store, 5, []);
    store.observe(thing("b", 4));
    expect(store.size).toBe(0);
    store.observe(thing("a", 6));
    expect(store.size).toBe(1);
  });

  it("knows a write of ours at once, however far the watch of another namespace is", () => {
    const { store } = setup();
    store.apply(thing("a", 9, { namespace: "one" }));
    store.observe(thing("b", 8, { namespace: "two" }));
    expect(store.get("two/b")).toBeDefined();
  });

  it("does not keep a write that the list did know", () => {
    const { store } = setup();
    const inFlight = store.beginList(undefined);
    store.observe(thing("a", 12));
    store.replace(inFlight, [], "20");
    expect(store.size).toBe(0);
  });

  it("with a list of one namespace, leaves the others alone", () => {
    const { store } = setup();
    list(store, 5, [thing("a", 1, { namespace: "one" })], "one");
    list(store, 6, [thing("a", 2, { namespace: "two" })], "two");
    list(store, 7, [], "two");
    expect([...store.values()].map((each) => each.metadata.namespace)).toEqual(["one"]);
  });
});

describe("a list tells a store that the history was taken back", () => {
  it.each([
    ["when it is older than the newest that was told", "9", [thing("a", 4)], true],
    ["when an object in it is older, though versions were raised", "1000", [thing("a", 3)], true],
    ["when an object of before took the name back", "1000", [thing("a", 3, { uid: "0" })], true],
    ["but not when nothing has changed", "10", [thing("a", 4)], false],
    ["but not when an object was made anew", "20", [thing("a", 15, { uid: "2" })], false],
    ["but not when all are gone", "20", [], false],
  ])("%s", (_when, version, objects, expected) => {
    const { store } = setup();
    list(store, 5, [thing("a", 4), thing("b", 4)]);
    store.remove(thing("b", 10));
    expect(store.isTakenBackBy(store.beginList(undefined), objects, version)).toBe(expected);
  });

  it("but not when a write of ours came after it", () => {
    const { store } = setup();
    list(store, 5, [thing("a", 4)]);
    const inFlight = store.beginList(undefined);
    store.observe(thing("a", 12));
    expect(store.isTakenBackBy(inFlight, [thing("a", 4)], "11")).toBe(false);
  });

  it("when it has not what a write of ours made before it was asked for", () => {
    const { store } = setup();
    list(store, 5, []);
    store.observe(thing("a", 12));
    expect(store.isTakenBackBy(store.beginList(undefined), [], "11")).toBe(true);
    expect(store.isTakenBackBy(store.beginList("other"), [], "11")).toBe(false);
    expect(store.isTakenBackBy(store.beginList(undefined), [], "13"), "deleted since").toBe(false);
  });

  it("each namespace by what was told of it", () => {
    const { store } = setup();
    list(store, 5, [], "one");
    list(store, 50, [], "two");
    expect(store.isTakenBackBy(store.beginList("one"), [], "6")).toBe(false);
    expect(store.isTakenBackBy(store.beginList("two"), [], "6")).toBe(true);
    expect(store.isTakenBackBy(store.beginList(undefined), [], "6")).toBe(true);
  });
});

describe("resource versions", () => {
  it("are compared as numbers of any length", () => {
    expect(compareResourceVersions("9", "10")).toBeLessThan(0);
    expect(compareResourceVersions("10", "10")).toBe(0);
    expect(compareResourceVersions("90071992547409930", "90071992547409929")).toBeGreaterThan(0);
  });
});
