import type { KubeObject } from "../kube/objects.ts";

/** One line of a watch. */
export type WatchEvent<Raw extends KubeObject> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"; readonly object: Raw }
  | {
      readonly type: "ERROR";
      readonly object: { readonly code?: number; readonly reason?: string; readonly message?: string };
    };

/** The events of a watch's body: one JSON document a line, cut anywhere by the network. */
export async function* watchEvents<Raw extends KubeObject>(
  body: AsyncIterable<Buffer>,
): AsyncGenerator<WatchEvent<Raw>> {
  // Chunks are joined only at a line's end: a long line in many chunks must not be copied for each.
  let pending: Buffer[] = [];
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      pending.push(chunk.subarray(start, end));
      const line = pending.length === 1 && pending[0] ? pending[0] : Buffer.concat(pending);
      pending = [];
      start = end + 1;
      if (line.length > 0) yield JSON.parse(line.toString("utf8"));
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
}
