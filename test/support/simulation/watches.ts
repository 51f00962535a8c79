import type { KubeRequest, Stream } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import type { Resource } from "../../../src/kube/paths.ts";
import { INITIAL_EVENTS_END } from "../../../src/runtime/initial-list.ts";
import { selectionOf, targetOf } from "./selectors.ts";

type EventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";

interface OpenWatch {
  readonly plural: string;
  readonly isSelected: (object: KubeObject) => boolean;
  /** UIDs of the objects that the watch has shown. */
  readonly shown: Set<string>;
  readonly lines: Buffer[];
  wake: () => void;
}

/** Watches of a simulated API server, that begin with all objects. */
export class SimulatedWatches {
  readonly #open = new Set<OpenWatch>();

  get open(): number {
    return this.#open.size;
  }

  /** An object was created or changed, or is gone. */
  send({ plural }: Resource, object: KubeObject, { isGone = false } = {}): void {
    const { uid } = object.metadata;
    for (const watch of this.#open) {
      if (watch.plural !== plural) continue;
      const wasShown = watch.shown.has(uid);
      // An object that leaves the selection is deleted for this watch.
      const isShown = !isGone && watch.isSelected(object);
      if (!wasShown && !isShown) continue;
      if (isShown) watch.shown.add(uid);
      else watch.shown.delete(uid);
      const changed = wasShown ? "MODIFIED" : "ADDED";
      watch.lines.push(lineOf(isShown ? changed : "DELETED", object));
      watch.wake();
    }
  }

  /** @param objects all objects of the kind, which the watch begins with */
  stream(request: KubeRequest, objects: Iterable<KubeObject>, version: string): Stream {
    // The version of an earlier watch is too old, so the watch begins with all objects again.
    if (request.query?.["sendInitialEvents"] === undefined) throw new KubeApiError("WATCH", 410, "{}");
    const bookmark = {
      metadata: { resourceVersion: version, annotations: { [INITIAL_EVENTS_END]: "true" } },
    };
    const isSelected = selectionOf(request);
    const selected = [...objects].filter(isSelected);
    const watch: OpenWatch = {
      plural: targetOf(request).plural,
      isSelected,
      shown: new Set(selected.map(({ metadata }) => metadata.uid)),
      lines: [
        ...selected.map((each) => lineOf("ADDED", each)),
        Buffer.from(`${JSON.stringify({ type: "BOOKMARK", object: bookmark })}\n`),
      ],
      wake: () => undefined,
    };
    this.#open.add(watch);
    request.signal?.addEventListener("abort", () => watch.wake());
    return this.#linesOf(watch, request.signal);
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
