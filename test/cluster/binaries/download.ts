import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { chmod, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { EnvHttpProxyAgent, fetch, type Response } from "undici";
import { messageOf } from "../errors.ts";
import { isWriteFailure } from "../paths.ts";
import type { Progress } from "../progress.ts";
import type { Staging } from "./cache.ts";
import type { Source } from "./sources.ts";
import { sumOf } from "./sums.ts";
import { extract } from "./untar.ts";

/** Within this the sums must be there: they are small, and tell at once whether there is internet at all. */
const PROBE_MS = 5_000;

export interface DownloadContext {
  readonly progress: Progress;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Downloads the programs into a staging folder, each checked against the SHA-256
 * that is published beside it before anything else is done with it.
 *
 * @throws Error what is not reachable, or does not have the sum it should.
 */
export async function download(
  staging: Staging,
  sources: readonly Source[],
  { progress, signal }: DownloadContext,
): Promise<void> {
  // Honours HTTPS_PROXY and NO_PROXY, which Node's own fetch does not; a stalled transfer ends it.
  const dispatcher = new EnvHttpProxyAgent({ bodyTimeout: 30_000, headersTimeout: 30_000 });
  const stop = new AbortController();
  const signals = [stop.signal, ...(signal ? [signal] : [])];
  const get: Get = (url, limitMs) =>
    request(url, dispatcher, [...signals, ...(limitMs ? [AbortSignal.timeout(limitMs)] : [])]);
  const step = progress.step("Downloading the cluster's programs");
  const received = new Received((text) => step.update(text));
  try {
    const sums = await together(stop, fetchSums(sources, get));
    const fetches = sources.map((source) => fetchProgram(source, new Map(sums), staging, get, received));
    await together(stop, fetches);
  } finally {
    step.end();
    await dispatcher.destroy();
  }
}

/** The first to fail ends the others, and is told when they have ended: none goes on writing unseen. */
async function together<T>(stop: AbortController, tasks: readonly Promise<T>[]): Promise<T[]> {
  try {
    return await Promise.all(tasks);
  } catch (error) {
    stop.abort();
    await Promise.allSettled(tasks);
    throw error;
  }
}

type Get = (url: string, limitMs?: number) => Promise<Response>;

async function request(url: string, dispatcher: EnvHttpProxyAgent, signals: AbortSignal[]) {
  try {
    const response = await fetch(url, { dispatcher, signal: AbortSignal.any(signals) });
    if (!response.ok) throw new Error(`it answers ${response.status}`);
    return response;
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new Error(`${url} cannot be had: ${messageOf(cause)}`, { cause: error });
  }
}

/** The published texts, with the address that each is at. This is also the probe. */
function fetchSums(sources: readonly Source[], get: Get): Promise<[url: string, text: string]>[] {
  const urls = new Set(sources.map(({ sumUrl }) => sumUrl));
  return [...urls].map(async (url): Promise<[string, string]> => {
    const response = await get(url, PROBE_MS);
    return [url, await response.text()];
  });
}

async function fetchProgram(
  source: Source,
  sums: ReadonlyMap<string, string>,
  staging: Staging,
  get: Get,
  received: Received,
): Promise<void> {
  const published = sumOf(source.url, sums.get(source.sumUrl) ?? "");
  const program = join(staging.bin, source.program);
  const file = source.member ? join(staging.dir, basename(source.url)) : program;
  const response = await get(source.url);
  const sum = await save(response, file, source.url, received);
  if (sum !== published) {
    throw new Error(`${source.url} is not what was published: its SHA-256 is ${sum}, not ${published}`);
  }
  if (source.member) {
    await extract(file, source.member, program);
    await rm(file);
  }
  await chmod(program, 0o755);
}

/** Saves a body and returns its SHA-256. */
async function save(response: Response, file: string, url: string, received: Received): Promise<string> {
  const hash = createHash("sha256");
  received.expect(Number(response.headers.get("content-length") ?? 0));
  const measure = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      received.add(chunk.length);
      done(null, chunk);
    },
  });
  try {
    await pipeline(response.body ? Readable.fromWeb(response.body) : [], measure, createWriteStream(file));
  } catch (error) {
    if (isWriteFailure(error)) throw error;
    throw new Error(`the download of ${url} broke off: ${messageOf(error)}`, { cause: error });
  }
  return hash.digest("hex");
}

/** How much of all downloads together has come. */
class Received {
  #expected = 0;
  #received = 0;
  readonly #show: (text: string) => void;

  constructor(show: (text: string) => void) {
    this.#show = show;
  }

  expect(bytes: number): void {
    this.#expected += bytes;
  }

  add(bytes: number): void {
    this.#received += bytes;
    this.#show(`${megabytes(this.#received)} of ${megabytes(this.#expected)} MB`);
  }
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
