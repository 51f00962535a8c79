const NEWLINE = 0x0a;

/** @returns a function that returns the lines that a chunk completes, without empty ones */
export function splitLines(): (chunk: Buffer) => Buffer[] {
  // Chunks are joined only at the end of a line, so that a long line is not copied once per chunk.
  let pending: Buffer[] = [];
  return (chunk) => {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      pending.push(chunk.subarray(start, end));
      lines.push(joined(pending));
      pending = [];
      start = end + 1;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
    return lines.filter((line) => line.length > 0);
  };
}

/** Each frame follows its length, an unsigned big-endian integer of this many bytes. */
const HEADER_BYTES = 4;

/** Far above the default limit of etcd for an object, 1.5 MiB, so a longer frame is malformed. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024;

/**
 * @returns a function that returns the frames that a chunk completes
 * @throws Error for a frame that is longer than any object
 */
export function splitFrames(): (chunk: Buffer) => Buffer[] {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let neededBytes = HEADER_BYTES;
  return (chunk) => {
    pending.push(chunk);
    pendingBytes += chunk.length;
    if (pendingBytes < neededBytes) return [];
    const data = joined(pending);
    const frames: Buffer[] = [];
    let start = 0;
    neededBytes = HEADER_BYTES;
    while (data.length - start >= HEADER_BYTES) {
      const length = data.readUInt32BE(start);
      if (length > MAX_FRAME_BYTES) throw new Error(`a frame of a watch has ${length} bytes`);
      neededBytes = HEADER_BYTES + length;
      if (data.length - start < neededBytes) break;
      frames.push(data.subarray(start + HEADER_BYTES, start + neededBytes));
      start += neededBytes;
      neededBytes = HEADER_BYTES;
    }
    pending = start < data.length ? [data.subarray(start)] : [];
    pendingBytes = data.length - start;
    return frames;
  };
}

function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  return parts.length === 1 && first ? first : Buffer.concat(parts);
}
