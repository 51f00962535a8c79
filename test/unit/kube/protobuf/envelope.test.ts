import { PbfReader, PbfWriter } from "pbf";
import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import type { ConfigMap } from "../../../../src/kube/objects.ts";
import { decode, isProtobuf, listOf } from "../../../../src/kube/protobuf/envelope.ts";
import { integerOrString, json, Message, string, time } from "../../../../src/kube/protobuf/message.ts";
import { configMap } from "../../../../src/kube/protobuf/messages.ts";
import { watchEvents } from "../../../../src/runtime/watch-stream.ts";

type Write = (writer: PbfWriter) => void;

function encoded(write: Write): Uint8Array {
  const writer = new PbfWriter();
  write(writer);
  return writer.finish();
}

/** An object in the format of the API server: `k8s`, a zero byte, and a runtime.Unknown. */
function enveloped(write: Write): Buffer {
  const unknown = encoded((writer) => {
    writer.writeBytesField(
      1,
      encoded((type) => type.writeStringField(1, "v1")),
    );
    writer.writeBytesField(2, encoded(write));
  });
  return Buffer.concat([Buffer.from("k8s\0"), unknown]);
}

const map = (version: string): Write => {
  return (writer) => {
    writer.writeMessage(1, (_, metadata) => metadata.writeStringField(6, version), undefined);
    writer.writeMessage(2, (_, entry) => entry.writeStringField(1, "key"), undefined);
    writer.writeStringField(99, "a field of a later version");
  };
};

async function* framesOf(...events: readonly (readonly [type: string, object: Buffer])[]) {
  for (const [type, object] of events) {
    const frame = encoded((writer) => {
      writer.writeStringField(1, type);
      writer.writeBytesField(
        2,
        encoded((extension) => extension.writeBytesField(1, object)),
      );
    });
    const header = Buffer.alloc(4);
    header.writeUInt32BE(frame.length);
    yield Buffer.concat([header, frame]);
  }
}

function watch(known: string, ...events: readonly (readonly [type: string, object: Buffer])[]) {
  const frames = framesOf(...events);
  const body = { isProtobuf: true, [Symbol.asyncIterator]: () => frames };
  const isKnown = (version: string) => version === known;
  return watchEvents<ConfigMap>(body, { path: "/maps", message: configMap, isKnown });
}

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe("an object in protobuf", () => {
  it("has only the declared fields", () => {
    expect(decode(configMap, enveloped(map("7")))).toEqual({
      metadata: { resourceVersion: "7" },
      data: { key: "" },
    });
  });

  it("is rejected if it lacks the magic prefix", () => {
    expect(() => decode(configMap, Buffer.from('{"kind":"ConfigMap"}'))).toThrow(
      "not an object of Kubernetes",
    );
    expect(() => decode(configMap, Buffer.alloc(0))).toThrow("not an object of Kubernetes");
  });

  it("is rejected wherever it is cut off", () => {
    const list = enveloped((writer) => {
      writer.writeMessage(1, (_, meta) => meta.writeStringField(2, "8"), undefined);
      for (const version of ["5", "6", "7"]) writer.writeBytesField(2, encoded(map(version)));
    });
    expect(decode(listOf(configMap), list).items).toHaveLength(3);
    for (let length = 0; length < list.length; length += 1)
      expect(() => decode(listOf(configMap), list.subarray(0, length))).toThrow();
  });

  it.each([
    [1, "1970-01-01T00:00:01Z"],
    [253_402_300_799, "9999-12-31T23:59:59Z"],
    [253_402_300_800, undefined],
    [1e15, undefined],
    [-1, "1969-12-31T23:59:59Z"],
    [-62_167_219_201, undefined],
    [-1e15, undefined],
  ])("has the time %j as JSON would have it: %j", (seconds, text) => {
    const of = new Message<{ readonly value?: string; readonly other?: string }>({
      value: time(1),
      other: string(2),
    });
    const bytes = encoded((writer) => {
      writer.writeBytesField(
        1,
        encoded((inner) => inner.writeVarintField(1, seconds)),
      );
      writer.writeStringField(2, "follows");
    });
    const read = of.read(new PbfReader(bytes));
    expect(read.other).toBe("follows");
    expect(read.value).toBe(text);
  });

  it("has no items if it is an empty list", () => {
    const list = decode(
      listOf(configMap),
      enveloped((writer) => writer.writeMessage(1, (_, meta) => meta.writeStringField(2, "8"), undefined)),
    );
    expect(list).toEqual({ metadata: { resourceVersion: "8" } });
  });

  it("is recognized by its content type, with any parameters", () => {
    expect(isProtobuf("application/vnd.kubernetes.protobuf;stream=watch")).toBe(true);
    expect(isProtobuf("application/json")).toBe(false);
    expect(isProtobuf(undefined)).toBe(false);
  });

  it.each<[unknown, Write]>([
    [0, () => undefined],
    [3, (writer) => writer.writeVarintField(2, 3)],
    [
      "25%",
      (writer) => {
        writer.writeVarintField(1, 1);
        writer.writeStringField(3, "25%");
      },
    ],
    ["", (writer) => writer.writeVarintField(1, 1)],
  ])("has %j for an IntOrString", (value, write) => {
    const of = new Message<{ readonly value: number | string }>({ value: integerOrString(1) });
    const bytes = encoded((writer) => writer.writeBytesField(1, encoded(write)));
    expect(of.read(new PbfReader(bytes))).toEqual({ value });
  });
});

describe("a field with JSON in bytes", () => {
  const of = new Message<{ readonly value: object }>({ value: json<object>(1) });
  const bytesOf = (text: string) =>
    Buffer.from(
      encoded((writer) =>
        writer.writeBytesField(
          1,
          encoded((inner) => inner.writeStringField(1, text)),
        ),
      ),
    );
  const valueIn = (bytes: Buffer) => of.read(new PbfReader(bytes)).value;

  it("is decoded to the same value for objects with the same text", () => {
    expect(valueIn(bytesOf('{"f:a":{}}'))).toBe(valueIn(bytesOf('{"f:a":{}}')));
  });

  it("is decoded to a different value for a different text of the same length", () => {
    const values = ['{"f:a":{}}', '{"f:b":{}}', '{"f:a":{}}'].map((text) => valueIn(bytesOf(text)));
    expect(values).toEqual([{ "f:a": {} }, { "f:b": {} }, { "f:a": {} }]);
  });

  it("does not depend on the buffer of an earlier response", () => {
    const bytes = bytesOf('{"f:c":{}}');
    valueIn(bytes);
    bytes.set(bytesOf('{"f:d":{}}'));
    expect(valueIn(bytes)).toEqual({ "f:d": {} });
  });
});

describe("a watch in protobuf", () => {
  it("returns the events in order", async () => {
    const events = await collected(
      watch(
        "",
        ["ADDED", enveloped(map("1"))],
        ["MODIFIED", enveloped(map("2"))],
        ["DELETED", enveloped(map("3"))],
      ),
    );
    expect(events).toMatchObject([
      { type: "ADDED", object: { metadata: { resourceVersion: "1" } } },
      { type: "MODIFIED", object: { metadata: { resourceVersion: "2" } } },
      { type: "DELETED", object: { metadata: { resourceVersion: "3" } } },
    ]);
  });

  it("skips only the event of a known change without decoding it", async () => {
    const object = enveloped(map("2"));
    expect(await collected(watch("2", ["MODIFIED", object], ["DELETED", object]))).toMatchObject([
      { type: "KNOWN", resourceVersion: "2" },
      { type: "DELETED" },
    ]);
  });

  it("fails with the message of the API server on an ERROR event", async () => {
    const status = enveloped((writer) => {
      writer.writeStringField(3, "too old resource version: 1 (7)");
      writer.writeStringField(4, "Expired");
      writer.writeVarintField(6, 410);
    });
    const failed = collected(watch("", ["ERROR", status]));
    await expect(failed).rejects.toBeInstanceOf(KubeApiError);
    await expect(failed).rejects.toMatchObject({
      code: 410,
      reason: "Expired",
      message: "watch of /maps: 410 too old resource version: 1 (7)",
    });
  });
});
