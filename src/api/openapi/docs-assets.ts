import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

/** Files of the page that shows the OpenAPI document: our own, and those of swagger-ui-dist. */
const OURS = ["index.html", "page.css", "start.js"] as const;
const THEIRS = ["swagger-ui.css", "swagger-ui-bundle.js"] as const;

export type DocsAsset = (typeof OURS)[number] | (typeof THEIRS)[number];

export const DOCS_ASSETS: readonly DocsAsset[] = [...OURS, ...THEIRS];

// The build copies the files, and replaces this module with one that reads the copies (rolldown.config.ts).

export function gzippedAsset(name: DocsAsset): Buffer {
  return gzipSync(readFileSync(docsAssetPath(name)), { level: 9 });
}

export function docsAssetPath(name: DocsAsset): string {
  const isOurs = OURS.some((file) => file === name);
  const folder = isOurs
    ? new URL("docs/", import.meta.url)
    : import.meta.resolve("swagger-ui-dist/package.json");
  return fileURLToPath(new URL(name, folder));
}
