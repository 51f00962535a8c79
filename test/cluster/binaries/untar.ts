import { createReadStream, createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";

const BLOCK = 512;

/**
 * Takes one file out of a .tar.gz. Only what the archives of etcd and helm need:
 * plain entries with short names, and nothing but that one file is written.
 */
export async function extract(archive: string, member: string, to: string): Promise<void> {
  await pipeline(
    createReadStream(archive),
    createGunzip(),
    (tar: AsyncIterable<Buffer>) => contentOf(member, tar),
    createWriteStream(to, { mode: 0o755 }),
  );
}

/** Reads to the end, also past the file: a stream that is left early counts as broken. */
async function* contentOf(member: string, tar: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0);
  /** Bytes still to come of the entry at hand, its padding included. */
  let rest = 0;
  /** Of those, the bytes of the file. */
  let wanted = 0;
  let found = false;
  for await (const chunk of tar) {
    held = Buffer.concat([held, chunk]);
    while (held.length > 0) {
      const taken = held.subarray(0, rest);
      if (wanted > 0 && taken.length > 0) yield Buffer.from(taken.subarray(0, wanted));
      wanted = Math.max(0, wanted - taken.length);
      rest -= taken.length;
      held = held.subarray(taken.length);
      if (rest > 0 || held.length < BLOCK) break;
      const entry = header(held.subarray(0, BLOCK));
      held = held.subarray(BLOCK);
      rest = Math.ceil(entry.size / BLOCK) * BLOCK;
      if (found || !entry.isFile || entry.name !== member) continue;
      found = true;
      wanted = entry.size;
    }
  }
  if (!found) throw new Error(`there is no ${member} in the archive`);
  if (wanted > 0) throw new Error(`the archive ends within ${member}`);
}

function header(block: Buffer): { name: string; size: number; isFile: boolean } {
  const text = (from: number, length: number) =>
    block.toString("utf8", from, from + length).replace(/\0.*$/s, "");
  const prefix = text(257, 5) === "ustar" ? text(345, 155) : "";
  const type = text(156, 1);
  return {
    name: (prefix ? `${prefix}/` : "") + text(0, 100).replace(/^\.\//, ""),
    size: Number.parseInt(text(124, 12).trim() || "0", 8),
    isFile: type === "0" || type === "",
  };
}
