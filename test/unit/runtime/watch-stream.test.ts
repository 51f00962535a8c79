import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../src/kube/errors.ts";
import type { ConfigMap } from "../../../src/kube/objects.ts";
import { watchEvents } from "../../../src/runtime/watch-stream.ts";

async function read(chunks: readonly Buffer[], ours: readonly string[] = []) {
  const isKnown = (version: string) => ours.includes(version);
  const body = async function* () {
    yield* chunks;
  };
  const events: unknown[] = [];
  for await (const each of watchEvents<ConfigMap>(body(), { path: "/api/v1/things", isKnown }))
    events.push(each);
  return events;
}

function event(type: string, metadata: object, data = {}) {
  return { type, object: { metadata: { name: "a", uid: "1", resourceVersion: "7", ...metadata }, data } };
}

function line(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}

describe("events of a watch", () => {
  it("are the same no matter where the network splits them", async () => {
    const text = fc.string({ unit: "binary" });
    const cuts = fc.array(fc.nat({ max: 500 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 5 }), cuts, async (values, at) => {
        const events = values.map((value) => event("ADDED", {}, { value }));
        const whole = Buffer.concat(events.map(line));
        const ends = [...at.filter((cut) => cut < whole.length).sort((a, b) => a - b), whole.length];
        const chunks = ends.map((end, index) => whole.subarray(ends[index - 1] ?? 0, end));
        expect(await read(chunks)).toEqual(events);
      }),
    );
  });

  it("do not include empty lines", async () => {
    expect(await read([Buffer.from("\n"), line(event("ADDED", {})), Buffer.from("\n")])).toHaveLength(1);
  });

  it("are thrown as errors if their type is ERROR", async () => {
    const refused = read([line({ type: "ERROR", object: { code: 410, reason: "Expired" } })]);
    await expect(refused).rejects.toThrow(KubeApiError);
    await expect(refused).rejects.toThrow(/watch of \/api\/v1\/things.*410/);
  });

  it("are skipped without parsing if the change is known", async () => {
    const known = { type: "KNOWN", resourceVersion: "7" };
    expect(await read([line(event("MODIFIED", {}))], ["7"])).toEqual([known]);
    const other = event("MODIFIED", { resourceVersion: "8" });
    expect(await read([line(other)], ["7"])).toEqual([other]);
  });

  it("are parsed if their type is not MODIFIED, because an object that leaves the selector is reported as deleted", async () => {
    const events = ["ADDED", "DELETED", "BOOKMARK"].map((type) => event(type, {}));
    expect(await read(events.map(line), ["7"])).toEqual(events);
  });

  it("are parsed if another field contains the known version", async () => {
    const annotations = { resourceVersion: "7" };
    const inAnnotation = {
      type: "MODIFIED",
      object: { metadata: { annotations, name: "a", uid: "1", resourceVersion: "8" } },
    };
    const inData = event("MODIFIED", { resourceVersion: "8" }, { resourceVersion: "7" });
    expect(await read([inAnnotation, inData].map(line), ["7"])).toEqual([inAnnotation, inData]);
  });

  it("are skipped even if a string in them contains a resource version", async () => {
    const inText = event("MODIFIED", {}, { text: '"resourceVersion":"8"' });
    expect(await read([line(inText)], ["7"])).toEqual([{ type: "KNOWN", resourceVersion: "7" }]);
  });
});
