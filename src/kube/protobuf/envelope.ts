import { PbfReader } from "pbf";
import { integer, Message, message, messages, type ReadValue, string } from "./message.ts";

/** The protobuf encoding of Kubernetes for built-in kinds. For other kinds, the API server responds with JSON. */
export const PROTOBUF = "application/vnd.kubernetes.protobuf";

/** Each object begins with these bytes: `k8s` and 0. A `runtime.Unknown` with the object follows. */
const MAGIC = Buffer.from("k8s\0");

const bytes: ReadValue<Uint8Array> = (reader) => reader.readBytes();

interface Unknown {
  readonly raw?: Uint8Array;
}

const unknown = new Message<Unknown>({ raw: { number: 2, read: bytes } });

export function isProtobuf(contentType: string | string[] | undefined): boolean {
  return typeof contentType === "string" && contentType.startsWith(PROTOBUF);
}

/** @throws Error if it is not a complete object in this encoding */
export function decode<T>(of: Message<T>, encoded: Uint8Array): T {
  if (!MAGIC.equals(encoded.subarray(0, MAGIC.length)))
    throw new Error("not an object of Kubernetes in protobuf");
  const envelope = new PbfReader(encoded.subarray(MAGIC.length));
  const { raw } = unknown.read(envelope);
  // A proxy may end a body early. The reader returns the bytes that there are, but its position is after the missing ones.
  if (!raw || envelope.pos !== envelope.length)
    throw new Error("an object of Kubernetes in protobuf is cut off");
  return of.read(new PbfReader(raw));
}

export interface List<T> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  /** Absent from an empty list in protobuf. */
  readonly items?: readonly T[];
}

const listMeta = new Message<List<unknown>["metadata"]>({ resourceVersion: string(2), continue: string(3) });

/** The list of a kind. All lists have the same fields. */
export function listOf<T>(item: Message<T>): Message<List<T>> {
  return new Message<List<T>>({ metadata: message(1, listMeta), items: messages(2, item) });
}

interface Status {
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: {
    readonly causes?: readonly StatusCause[];
    readonly retryAfterSeconds?: number;
  };
}

interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

const cause = new Message<StatusCause>({ reason: string(1), message: string(2), field: string(3) });

/** An error of the API server. */
export const status = new Message<Status>({
  message: string(3),
  reason: string(4),
  details: message(
    5,
    new Message<NonNullable<Status["details"]>>({
      causes: messages(4, cause),
      retryAfterSeconds: integer(5),
    }),
  ),
  code: integer(6),
});

/** An event of a watch; the object in it has an envelope of its own. */
export interface EncodedWatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: Uint8Array;
}

const rawExtension = new Message<Unknown>({ raw: { number: 1, read: bytes } });

const watchEvent = new Message<{ readonly type: EncodedWatchEvent["type"]; readonly object: Unknown }>({
  type: { number: 1, read: (reader) => reader.readString() as EncodedWatchEvent["type"] },
  object: message(2, rawExtension),
});

export function decodeWatchEvent(frame: Uint8Array): EncodedWatchEvent {
  const { type, object } = watchEvent.read(new PbfReader(frame));
  return { type, object: object.raw ?? new Uint8Array() };
}

/** Only the version, which is cheap to read. */
export const objectVersion = new Message<{ readonly metadata: { readonly resourceVersion: string } }>({
  metadata: message(1, new Message<{ readonly resourceVersion: string }>({ resourceVersion: string(6) })),
});
