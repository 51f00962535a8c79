import { basename } from "node:path";
import { z } from "zod";

const releaseSchema = z.object({
  assets: z.array(z.object({ name: z.string(), digest: z.string().nullish() })),
});

const SHA256 = /^[0-9a-f]{64}$/;

/**
 * Finds a file's SHA-256 in what is published beside it. Three forms: the bare
 * sum; lines of a sum and a name, as sha256sum writes them; and a release as
 * GitHub's API describes it, with a digest for each file.
 *
 * @throws Error if it is not there: what cannot be checked is not used.
 */
export function sumOf(url: string, published: string): string {
  const name = basename(url);
  const sum = published.trimStart().startsWith("{") ? inRelease(name, published) : inLines(name, published);
  if (!sum || !SHA256.test(sum)) throw new Error(`no SHA-256 of ${name} is published`);
  return sum;
}

function inRelease(name: string, published: string): string | undefined {
  const { assets } = releaseSchema.parse(JSON.parse(published));
  return assets.find((asset) => asset.name === name)?.digest?.replace(/^sha256:/, "");
}

function inLines(name: string, published: string): string | undefined {
  const lines = published
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+\*?/));
  const [only] = lines;
  if (lines.length === 1 && only?.length === 1) return only[0];
  return lines.find(([, file]) => file === name)?.[0];
}
