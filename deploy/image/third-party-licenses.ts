import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as z from "zod";

const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
const TEXT = /^(?:(?:un)?licen[cs]e|copying|notice|.+\.license)(?:[.-].*)?$/i;
/** Some packages have the text only in their README. */
const SECTION = /^(?:#+ )?licen[cs]e\b.*\n[\s\S]*/im;

const manifest = z.object({ name: z.string(), version: z.string(), license: z.string() });

/**
 * Returns the license texts of all packages whose files are in the bundle. Most licenses require that the text comes
 * with every copy.
 *
 * @param files paths of the bundled files
 * @throws Error if a package has no license text
 */
export function thirdPartyLicenses(files: Iterable<string>): string {
  const texts = new Map<string, Set<string>>();
  for (const file of files) {
    const [folder] = PACKAGE.exec(file) ?? [];
    if (folder === undefined) continue;
    const own = texts.get(folder) ?? new Set();
    for (const text of licenseFiles(folder, file)) own.add(text);
    texts.set(folder, own);
  }
  const sections = [...texts].map(([folder, paths]) => {
    const { name, version, license } = manifest.parse(
      JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
    );
    const bodies = [...paths].sort().map((path) => readFileSync(path, "utf8").trim());
    if (bodies.length === 0) bodies.push(licenseInReadme(folder));
    return { title: `${name} ${version} (${license})`, body: bodies.join("\n\n") };
  });
  return sections
    .sort((a, b) => (a.title < b.title ? -1 : 1))
    .map(({ title, body }) => `${title}\n${"=".repeat(title.length)}\n\n${body}\n`)
    .join("\n\n");
}

/** The texts of the package, and those of the packages that a bundled file contains itself (`<file>.LICENSE.txt`). */
function licenseFiles(folder: string, file: string): string[] {
  const isBundle = (name: string) => /\.license/i.test(name);
  return readdirSync(folder)
    .filter((name) => TEXT.test(name))
    .filter((name) => !isBundle(name) || (dirname(file) === folder && name.startsWith(`${basename(file)}.`)))
    .map((name) => join(folder, name));
}

function licenseInReadme(folder: string): string {
  const readme = readdirSync(folder).find((name) => /^readme/i.test(name));
  const [text] = (readme && SECTION.exec(readFileSync(join(folder, readme), "utf8"))) || [];
  if (!text) throw new Error(`${folder} has no license text`);
  return text.trim();
}
