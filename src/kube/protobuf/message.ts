import type { PbfReader } from "pbf";
import { memoized } from "../memoized.ts";

/**
 * Reads the value of a field that the reader has reached. `undefined` leaves the property out.
 *
 * @param previous the value so far of a field that comes more than once
 */
export type ReadValue<T> = (reader: PbfReader, previous: unknown) => T | undefined;

interface Field<T> {
  readonly number: number;
  readonly read: ReadValue<T>;
}

/** The fields of a message that are read, one for each property. Readers skip all others. */
export type Fields<T> = { readonly [Key in keyof T]-?: Field<NonNullable<T[Key]>> };

/** Reads a message as the object that its JSON encoding would give, with only the declared fields. */
export class Message<T> {
  /** Readers of the fields; the index is the field number. */
  readonly #fields: (readonly [key: string, read: ReadValue<unknown>] | undefined)[] = [];

  constructor(fields: Fields<T>) {
    for (const [key, { number, read }] of Object.entries<Field<unknown>>(fields)) {
      this.#fields[number] = [key, read];
    }
  }

  /** @param end position in the reader's buffer; its end if absent */
  read(reader: PbfReader, end?: number): T {
    const object: Record<string, unknown> = {};
    reader.readFields(this.#readField, object, end);
    // Each property has the type that its field reads. A required property is in every object of the API server.
    return object as T;
  }

  readonly #readField = (number: number, object: Record<string, unknown>, reader: PbfReader): void => {
    const field = this.#fields[number];
    if (!field) return;
    const [key, read] = field;
    const value = read(reader, object[key]);
    if (value !== undefined) object[key] = value;
  };
}

/** End of the embedded message that begins here. */
function embeddedEnd(reader: PbfReader): number {
  return reader.readVarint() + reader.pos;
}

/** A `string` of Go: an empty one is left out, as in JSON with `omitempty`. */
export function string(number: number): Field<string> {
  return { number, read: (reader) => reader.readString() || undefined };
}

/** A `string` of Go with few different values in thousands of objects, which share one copy of each. */
export function sharedString(number: number): Field<string> {
  const shared = memoized((text: string) => text);
  return { number, read: (reader) => shared(reader.readString()) || undefined };
}

/** An integer of Go: 0 is left out, as in JSON with `omitempty`. */
export function integer(number: number): Field<number> {
  return { number, read: (reader) => reader.readVarint(true) || undefined };
}

/** A pointer to an integer: 0 is a value. */
export function optionalInteger(number: number): Field<number> {
  return { number, read: (reader) => reader.readVarint(true) };
}

export function boolean(number: number): Field<boolean> {
  return { number, read: (reader) => reader.readBoolean() || undefined };
}

/** Bytes, in base64 as in JSON. */
const base64: ReadValue<string> = (reader) => Buffer.from(reader.readBytes()).toString("base64");

export function message<T>(number: number, of: Message<T>): Field<T> {
  return { number, read: (reader) => of.read(reader, embeddedEnd(reader)) };
}

export function repeated<T>(number: number, read: ReadValue<T>): Field<T[]> {
  return {
    number,
    read: (reader, previous = []) => {
      const items = previous as T[];
      const item = read(reader, undefined);
      if (item !== undefined) items.push(item);
      return items;
    },
  };
}

export function messages<T>(number: number, of: Message<T>): Field<T[]> {
  return repeated(number, (reader) => of.read(reader, embeddedEnd(reader)));
}

export function strings(number: number): Field<string[]> {
  return repeated(number, (reader) => reader.readString());
}

const KEY = 1;
const VALUE = 2;

function map(number: number, readValue: ReadValue<string>): Field<Record<string, string>> {
  return {
    number,
    read: (reader, previous = {}) => {
      const entries = previous as Record<string, string>;
      let key = "";
      let value = "";
      const end = embeddedEnd(reader);
      for (let field = reader.nextField(end); field !== 0; field = reader.nextField(end)) {
        if (field === KEY) key = reader.readString();
        else if (field === VALUE) value = readValue(reader, undefined) ?? "";
      }
      entries[key] = value;
      return entries;
    },
  };
}

export function stringMap(number: number): Field<Record<string, string>> {
  return map(number, (reader) => reader.readString());
}

export function bytesMap(number: number): Field<Record<string, string>> {
  return map(number, base64);
}

/** Names of resources with their `Quantity`, which is a message that contains the text. */
export function quantityMap(number: number): Field<Record<string, string>> {
  return map(number, (reader) => quantity.read(reader, embeddedEnd(reader)).text);
}

const quantity = new Message<{ readonly text: string }>({ text: string(1) });

/** A `Time`, converted to RFC 3339 as in JSON. The zero time, and times that JSON cannot express, are left out. */
export function time(number: number): Field<string> {
  return {
    number,
    read: (reader) => {
      const { seconds } = timestamp.read(reader, embeddedEnd(reader));
      return seconds === undefined ? undefined : rfc3339(seconds);
    },
  };
}

const rfc3339 = memoized((seconds: number) => {
  if (seconds < FIRST_S || seconds > LAST_S) return undefined;
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
});

const FIRST_S = Date.parse("0000-01-01T00:00:00Z") / 1000;
const LAST_S = Date.parse("9999-12-31T23:59:59Z") / 1000;

const timestamp = new Message<{ readonly seconds?: number }>({ seconds: integer(1) });

/** An `IntOrString`. */
export function integerOrString(number: number): Field<number | string> {
  return {
    number,
    read: (reader) => {
      const { type, integer: value = 0, text = "" } = either.read(reader, embeddedEnd(reader));
      return type === STRING ? text : value;
    },
  };
}

const STRING = 1;

const either = new Message<{ readonly type?: number; readonly integer?: number; readonly text?: string }>({
  type: integer(1),
  integer: integer(2),
  text: string(3),
});

/** Maximum number of cached JSON texts with their values. */
const MAX_TEXTS = 100;

/**
 * A message with one field, which contains JSON text as bytes: `FieldsV1`. Thousands of objects have the same few
 * texts, so the parsed values are shared between objects and must not be changed. Texts are compared as bytes, because
 * strings would be most of the garbage of a list.
 */
export function json<T>(number: number): Field<T> {
  /** The last text of each length. */
  const known = new Map<number, { readonly bytes: Buffer; readonly value: T }>();
  return {
    number,
    read: (reader) => {
      const { bytes } = jsonText.read(reader, embeddedEnd(reader));
      if (bytes === undefined) return undefined;
      const last = known.get(bytes.length);
      if (last?.bytes.equals(bytes)) return last.value;
      // A copy, so that the rest of the response can be freed.
      const text = Buffer.from(bytes);
      const value: T = JSON.parse(text.toString());
      if (known.size >= MAX_TEXTS) known.clear();
      known.set(text.length, { bytes: text, value });
      return value;
    },
  };
}

const jsonText = new Message<{ readonly bytes?: Uint8Array }>({
  bytes: { number: 1, read: (reader) => reader.readBytes() },
});
