import { randomUUID } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { atExit } from "../at-exit.ts";
import { killProgramsRunFrom } from "../processes.ts";
import { Binaries, PROGRAMS } from "./binaries.ts";

const MARKER = "complete.json";
const STAGING = ".staging-";

/** Written last, and into the folder before it gets its name: what it lists is whole. */
const markerSchema = z.object({
  source: z.string(),
  sizes: z.record(z.enum(PROGRAMS), z.number().int().positive()),
});

/** The programs in the cache under a key; undefined unless all of them are there, and whole. */
export function cached(folder: string, key: string): Binaries | undefined {
  const dir = join(folder, key);
  try {
    const marker = markerSchema.parse(JSON.parse(readFileSync(join(dir, MARKER), "utf8")));
    const whole = PROGRAMS.every((program) => statSync(join(dir, program)).size === marker.sizes[program]);
    return whole ? new Binaries(dir, `the cache (${marker.source})`) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * A folder beside the cached ones, where a set of programs is put together.
 *
 * Nothing in it is ever taken for a set of programs. It is removed when it is
 * disposed of, or when this process ends, together with what runs from it; what a
 * run killed hard has left, sweepStaging removes.
 */
export class Staging implements Disposable {
  readonly dir: string;
  /** What is to be published. */
  readonly bin: string;
  readonly #disown: () => void;

  constructor(folder: string) {
    this.dir = mkdtempSync(join(folder, STAGING));
    this.#disown = atExit(() => this.#remove());
    this.bin = join(this.dir, "bin");
    mkdirSync(this.bin);
  }

  /** Makes the programs in `bin` the ones in the cache under a key, in one step. */
  publish(folder: string, key: string, source: string): Binaries {
    const sizes = Object.fromEntries(PROGRAMS.map((name) => [name, statSync(join(this.bin, name)).size]));
    writeFileSync(join(this.bin, MARKER), `${JSON.stringify({ source, sizes }, undefined, 2)}\n`);
    const dir = join(folder, key);
    // One that is there already is not whole, or nobody would have staged another.
    setAside(folder, dir);
    renameSync(this.bin, dir);
    return new Binaries(dir, source);
  }

  [Symbol.dispose](): void {
    this.#remove();
    this.#disown();
  }

  #remove(): void {
    killProgramsRunFrom(this.dir);
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

function setAside(folder: string, dir: string): void {
  const aside = join(folder, `${STAGING}${randomUUID()}`);
  if (statSync(dir, { throwIfNoEntry: false }) === undefined) return;
  renameSync(dir, aside);
  rmSync(aside, { recursive: true, force: true });
}

/** Removes what half-done fetches and builds have left. Only for who holds the lock. */
export function sweepStaging(folder: string): void {
  for (const entry of readdirSync(folder)) {
    if (!entry.startsWith(STAGING)) continue;
    const dir = join(folder, entry);
    killProgramsRunFrom(dir);
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}
