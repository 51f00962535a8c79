import type { KubeRequest, Stream } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import type { Resource } from "../../../src/kube/paths.ts";
import { INITIAL_EVENTS_END } from "../../../src/runtime/initial-list.ts";

type EventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";

interface OpenWatch {
  readonly plural: string;
  readonly lines: Buffer[];
  wake: () => void;
}

/** Watches of a simulated API server, that begin with all objects. */
export class SimulatedWatches {
  readonly #open = new Set<OpenWatch>();

  get open(): number {
    return this.#open.size;
  }

  send({ plural }: Resource, type: EventType, object: KubeObject): void {
    for (const watch of this.#open) {
      if (watch.plural !== plural) continue;
      watch.lines.push(lineOf(type, object));
      watch.wake();
    }
  }

  /** @param objects all objects of the kind, which the watch begins with */
  stream({ path, query, signal }: KubeRequest, objects: Iterable<KubeObject>, version: string): Stream {
    // The version of an earlier watch is too old, so the watch begins with all objects again.
    if (query?.["sendInitialEvents"] === undefined) throw new KubeApiError("WATCH", 410, "{}");
    const bookmark = {
      metadata: { resourceVersion: version, annotations: { [INITIAL_EVENTS_END]: "true" } },
    };
    const watch: OpenWatch = {
      plural: path.split("/").at(-1) ?? "",
      lines: [
        ...[...objects].map((each) => lineOf("ADDED", each)),
        Buffer.from(`${JSON.stringify({ type: "BOOKMARK", object: bookmark })}\n`),
      ],
      wake: () => undefined,
    };
    this.#open.add(watch);
    signal?.addEventListener("abort", () => watch.wake());
    return this.#linesOf(watch, signal);
  }

  async *#linesOf(watch: OpenWatch, signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
    try {
      while (!signal?.aborted) {
        const line = watch.lines.shift();
        if (line) yield line;
        else
          await new Promise<void>((resolve) => {
            watch.wake = resolve;
          });
      }
      throw new KubeUnreachableError("the watch was ended");
    } finally {
      this.#open.delete(watch);
    }
  }
}

function lineOf(type: EventType, object: KubeObject): Buffer {
  return Buffer.from(`${JSON.stringify({ type, object })}\n`);
}
