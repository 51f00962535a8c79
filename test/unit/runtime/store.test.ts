import { describe, expect, it } from "vitest";
import { compareResourceVersions } from "../../../src/runtime/resource-version.ts";
import { byKey, type Change, Store } from "../../../src/runtime/store.ts";

interface Thing {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
  readonly color: string;
}

function thing(name: string, version: number, { uid = "1", color = "red", namespace = "ns" } = {}): Thing {
  return { metadata: { name, namespace, uid, resourceVersion: String(version) }, color };
}

function setup() {
  const store = new Store<Thing>({ color: (each) => [each.color] });
  const changes: string[] = [];
  store.onChange((change: Change<Thing>) => {
    const object = change.type === "deleted" ? change.previous : change.object;
    changes.push(`${change.type} ${object.metadata.name}@${object.metadata.resourceVersion}`);
  });
  return { store, changes };
}

function list(store: Store<Thing>, version: number, objects: Thing[], namespace?: string) {
  store.replace(store.beginList(namespace), byKey(objects), String(version));
}

describe("a store", () => {
  it("finds objects by name and by index, even after an indexed field changes", () => {
    const { store } = setup();
    store.apply(thing("a", 1));
    store.apply(thing("b", 2));
    store.apply(thing("a", 3, { color: "blue" }));
    expect(store.get("ns/a")?.color).toBe("blue");
    expect(store.by("color", "red").map((each) => each.metadata.name)).toEqual(["b"]);
    expect(store.by("color", "blue").map((each) => each.metadata.name)).toEqual(["a"]);
    expect(store.by("color", "green")).toEqual([]);
  });

  it("finds the objects of an index value that goes from several keys to none and back", () => {
    const { store } = setup();
    const names = (color: string) => store.by("color", color).map((each) => each.metadata.name);
    for (const [index, name] of ["a", "b", "c"].entries()) store.apply(thing(name, index + 1));
    expect(names("red")).toEqual(["a", "b", "c"]);
    store.apply(thing("a", 4, { color: "blue" }));
    store.remove(thing("b", 5));
    expect(names("red")).toEqual(["c"]);
    store.remove(thing("c", 6));
    expect(names("red")).toEqual([]);
    store.apply(thing("d", 7));
    expect(names("red")).toEqual(["d"]);
    store.apply(thing("a", 8));
    expect(names("red")).toEqual(["d", "a"]);
    expect(names("blue")).toEqual([]);
  });

  it("tells a deletion that it saw from one that only a list or a new object of that name shows", () => {
    const { store } = setup();
    const missed: string[] = [];
    store.onChange((change) => {
      if (change.type === "deleted") missed.push(`${change.previous.metadata.name} ${change.isMissed}`);
    });
    for (const name of ["a", "b", "c"]) store.apply(thing(name, 1));
    store.remove(thing("a", 2));
    store.apply(thing("b", 3, { uid: "2" }));
    list(store, 4, [thing("b", 3, { uid: "2" })]);
    expect(missed).toEqual(["a false", "b true", "c true"]);
  });

  it("loses an object when a response shows that it is not selected any more, and nothing else", () => {
    const { store, changes } = setup();
    store.apply(thing("a", 5));
    store.leave(thing("a", 4));
    expect(store.size).toBe(1);
    store.leave(thing("a", 7));
    store.leave(thing("unknown", 9));
    expect(changes).toEqual(["added a@5", "deleted a@5"]);
    // The version of a response is not one that a watch has reached.
    store.apply(thing("b", 6));
    list(store, 6, [thing("b", 6)]);
    expect(store.isRolledBackBy(store.beginList(undefined), byKey([thing("b", 6)]), "6")).toBe(false);
  });

  it("does not return to an older version if a watch event is late", () => {
    const { store, changes } = setup();
    store.observe(thing("a", 10));
    store.apply(thing("a", 9));
    store.apply(thing("a", 10));
    store.remove(thing("a", 8));
    expect(changes).toEqual(["added a@10"]);
  });

  it("remembers the version of its own write until the watch reaches it", () => {
    const { store } = setup();
    store.observe(thing("a", 5));
    expect([store.isOurs("5"), store.isOurs("6")]).toEqual([true, false]);
    store.skipOurs("5");
    expect(store.isOurs("5")).toBe(false);
    // The watch is past this version, so the object has been deleted since then.
    store.observe(thing("b", 4));
    expect(store.get("ns/b")).toBeUndefined();
  });

  it("forgets the version of its own write if the watch delivers the event", () => {
    const { store } = setup();
    store.observe(thing("a", 5));
    store.apply(thing("a", 5));
    expect(store.isOurs("5")).toBe(false);
  });

  it("does not remember the version of its own write if the watch was faster, or after a list", () => {
    const { store } = setup();
    store.apply(thing("a", 5));
    store.observe(thing("a", 5));
    expect(store.isOurs("5")).toBe(false);
    store.observe(thing("a", 7));
    list(store, 3, []);
    expect(store.isOurs("7")).toBe(false);
  });

  it("marks the changes from its own writes", () => {
    const { store } = setup();
    const ours: boolean[] = [];
    store.onChange(({ isOurs }) => ours.push(isOurs));
    store.observe(thing("a", 5));
    store.apply(thing("a", 6));
    store.observe(thing("a", 7));
    store.remove(thing("a", 8));
    expect(ours).toEqual([true, false, true, false]);
  });

  it("reports an object that was deleted and recreated as deleted and added", () => {
    const { store, changes } = setup();
    store.apply(thing("a", 1));
    store.apply(thing("a", 5, { uid: "2" }));
    expect(changes).toEqual(["added a@1", "deleted a@1", "added a@5"]);
  });

  it("equals the latest list: missing objects are deleted, and older versions are accepted", () => {
    const { store, changes } = setup();
    list(store, 10, [thing("a", 9), thing("b", 8), thing("c", 7)]);
    list(store, 5, [thing("a", 3), thing("b", 8), thing("c", 4, { uid: "2" })]);
    expect(changes.slice(3)).toEqual(["updated a@3", "deleted c@7", "added c@4"]);
    list(store, 6, []);
    expect(store.size).toBe(0);
  });

  it("keeps its own write that is newer than a list in flight", () => {
    const { store } = setup();
    store.apply(thing("a", 1));
    const inFlight = store.beginList(undefined);
    store.observe(thing("a", 12, { color: "blue" }));
    store.observe(thing("new", 13));
    store.replace(inFlight, byKey([thing("a", 1)]), "11");
    expect(store.get("ns/a")?.color).toBe("blue");
    expect(store.get("ns/new")).toBeDefined();
  });

  it("equals the latest list even if other objects have the same versions, as after an etcd restore", () => {
    const { store, changes } = setup();
    list(store, 5, [thing("a", 3), thing("b", 4), thing("c", 5)]);
    list(store, 5, [thing("a", 3, { uid: "2" }), thing("b", 4, { color: "blue" }), thing("c", 5)]);
    expect(changes.slice(3)).toEqual(["deleted a@3", "added a@3", "updated b@4"]);
    expect(store.get("ns/b")?.color).toBe("blue");
  });

  it("equals a list of a restored etcd although it ignored the response to its own write meanwhile", () => {
    const { store } = setup();
    store.apply(thing("a", 30));
    const inFlight = store.beginList(undefined);
    store.observe(thing("a", 24, { uid: "0", color: "blue" }));
    const listed = byKey([thing("a", 19, { uid: "0" })]);
    expect(store.isRolledBackBy(inFlight, listed, "23")).toBe(true);
    store.replace(inFlight, listed, "23");
    store.apply(thing("a", 24, { uid: "0", color: "blue" }));
    expect(store.get("ns/a")).toEqual(thing("a", 24, { uid: "0", color: "blue" }));
  });

  it("does not restore an object that was deleted before the response to its own write arrived", () => {
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

  it("accepts its own write immediately, even if the watch of another namespace is further ahead", () => {
    const { store } = setup();
    store.apply(thing("a", 9, { namespace: "one" }));
    store.observe(thing("b", 8, { namespace: "two" }));
    expect(store.get("two/b")).toBeDefined();
  });

  it("drops an object of its own write if a newer list does not contain it", () => {
    const { store } = setup();
    const inFlight = store.beginList(undefined);
    store.observe(thing("a", 12));
    store.replace(inFlight, new Map(), "20");
    expect(store.size).toBe(0);
  });

  it("changes only the namespace of a list", () => {
    const { store } = setup();
    list(store, 5, [thing("a", 1, { namespace: "one" })], "one");
    list(store, 6, [thing("a", 2, { namespace: "two" })], "two");
    list(store, 7, [], "two");
    expect([...store.values()].map((each) => each.metadata.namespace)).toEqual(["one"]);
  });
});

describe("the detection of an etcd rollback", () => {
  it.each([
    ["reports a rollback if the list is older than the newest version seen", "9", [thing("a", 4)], true],
    [
      "reports a rollback if an object is older, although the versions were raised after the restore",
      "1000",
      [thing("a", 3)],
      true,
    ],
    [
      "reports a rollback if the list has an older object with the same name",
      "1000",
      [thing("a", 3, { uid: "0" })],
      true,
    ],
    [
      "reports a rollback if the list has another object with the same name and version",
      "1000",
      [thing("a", 4, { uid: "0" })],
      true,
    ],
    ["does not report a rollback if nothing has changed", "10", [thing("a", 4)], false],
    ["does not report a rollback if an object was recreated", "20", [thing("a", 15, { uid: "2" })], false],
    ["does not report a rollback if all objects were deleted", "20", [], false],
  ])("%s", (_when, version, objects, expected) => {
    const { store } = setup();
    list(store, 5, [thing("a", 4), thing("b", 4)]);
    store.remove(thing("b", 10));
    expect(store.isRolledBackBy(store.beginList(undefined), byKey(objects), version)).toBe(expected);
  });

  it("does not report a rollback if the store's own write is newer than the list", () => {
    const { store } = setup();
    list(store, 5, [thing("a", 4)]);
    const inFlight = store.beginList(undefined);
    store.observe(thing("a", 12));
    expect(store.isRolledBackBy(inFlight, byKey([thing("a", 4)]), "11")).toBe(false);
  });

  it("reports a rollback if the list lacks an object that was written before the list", () => {
    const { store } = setup();
    list(store, 5, []);
    store.observe(thing("a", 12));
    expect(store.isRolledBackBy(store.beginList(undefined), new Map(), "11")).toBe(true);
    expect(store.isRolledBackBy(store.beginList("other"), new Map(), "11")).toBe(false);
    expect(store.isRolledBackBy(store.beginList(undefined), new Map(), "13"), "deleted since").toBe(false);
  });

  it("is separate for each namespace", () => {
    const { store } = setup();
    list(store, 5, [], "one");
    list(store, 50, [], "two");
    expect(store.isRolledBackBy(store.beginList("one"), new Map(), "6")).toBe(false);
    expect(store.isRolledBackBy(store.beginList("two"), new Map(), "6")).toBe(true);
    expect(store.isRolledBackBy(store.beginList(undefined), new Map(), "6")).toBe(true);
  });
});

describe("resource versions", () => {
  it("are compared as numbers of any length", () => {
    expect(compareResourceVersions("9", "10")).toBeLessThan(0);
    expect(compareResourceVersions("10", "10")).toBe(0);
    expect(compareResourceVersions("90071992547409930", "90071992547409929")).toBeGreaterThan(0);
  });
});
