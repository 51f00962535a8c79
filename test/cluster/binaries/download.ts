import { hash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import * as tar from "tar";
import { EnvHttpProxyAgent, fetch } from "undici";
import { z } from "zod";
import { messageOf } from "../errors.ts";
import type { Source } from "./sources.ts";
import type { FetchOptions, Staging } from "./staging.ts";

/** A checksum is small, so an unreachable host is detected soon. */
const SUM_TIMEOUT_MS = 5_000;
const PROGRAM_TIMEOUT_MS = 10 * 60_000;

/**
 * Downloads the programs one after the other, and checks each against its published SHA-256.
 *
 * @throws Error naming the URL that cannot be downloaded, or whose checksum differs
 */
export async function download(
  { dir, bin }: Staging,
  sources: readonly Source[],
  { progress, signal }: Pick<FetchOptions, "progress" | "signal">,
): Promise<void> {
  // Unlike Node's own fetch, this one uses HTTPS_PROXY and NO_PROXY.
  const dispatcher = new EnvHttpProxyAgent();
  const get = async (url: string, timeoutMs: number): Promise<Buffer> => {
    const signals = [AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])];
    try {
      const response = await fetch(url, { dispatcher, signal: AbortSignal.any(signals) });
      if (!response.ok) throw new Error(`the server responds with ${response.status}`);
      return Buffer.from(await response.arrayBuffer());
    } catch (error) {
      // The reason of a network error is only in the cause of the error of fetch.
      const reason = error instanceof Error && error.cause !== undefined ? error.cause : error;
      throw new Error(`${url} cannot be downloaded: ${messageOf(reason)}`, { cause: error });
    }
  };
  const step = progress.step("Downloading the cluster's programs");
  try {
    for (const [done, { program, url, sumUrl, member }] of sources.entries()) {
      step.update(`${done} of ${sources.length}`);
      const published = publishedSum(basename(url), String(await get(sumUrl, SUM_TIMEOUT_MS)));
      const content = await get(url, PROGRAM_TIMEOUT_MS);
      const sum = hash("sha256", content);
      if (sum !== published) throw new Error(`${url} has the SHA-256 ${sum} instead of ${published}`);
      const file = member ? join(dir, basename(url)) : join(bin, program);
      await writeFile(file, content, { mode: 0o755 });
      // Both archives have the program in a folder. As root, tar would set the owner that the archive names.
      if (member) await tar.x({ file, cwd: bin, strip: 1, strict: true, preserveOwner: false }, [member]);
    }
  } finally {
    step.end();
    await dispatcher.destroy();
  }
}

const release = z.object({ assets: z.array(z.object({ name: z.string(), digest: z.string().nullish() })) });

/**
 * Finds the SHA-256 of a file in the text that its publisher provides: a release in the format of the API of GitHub,
 * lines in the format of sha256sum, or only the checksum.
 */
export function publishedSum(name: string, text: string): string {
  const lines = text.split("\n").map((line) => line.trim().split(/\s+\*?/));
  const found = text.startsWith("{")
    ? release.parse(JSON.parse(text)).assets.find((asset) => asset.name === name)?.digest
    : lines.find(([, file = name]) => file === name)?.[0];
  const [, sum] = /^(?:sha256:)?([0-9a-f]{64})$/.exec(found ?? "") ?? [];
  if (!sum) throw new Error(`no SHA-256 of ${name} is published`);
  return sum;
}
