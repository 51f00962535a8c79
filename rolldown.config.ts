import { defineConfig, type Plugin } from "rolldown";
import { DOCS_ASSETS, gzippedAsset } from "./src/api/docs-assets.ts";

/** The module that reads the files of the docs page as one that has them. They are decoded when asked for. */
const embedDocsAssets: Plugin = {
  name: "embed-docs-assets",
  load: {
    filter: { id: /\/src\/api\/docs-assets\.ts$/ },
    handler() {
      const contents = DOCS_ASSETS.map((name) => [name, gzippedAsset(name).toString("base64")]);
      return `
        export const DOCS_ASSETS = ${JSON.stringify(DOCS_ASSETS)};
        export function gzippedAsset(name) {
          return Buffer.from(${JSON.stringify(Object.fromEntries(contents))}[name], "base64");
        }`;
    },
  },
};

/** What `charset` leaves as it is: authors' names in licenses. */
const escapeLegalComments: Plugin = {
  name: "escape-legal-comments",
  renderChunk: (code) => ({ code: code.replace(/\/\*!.*?\*\//gs, escapeNonAscii), map: null }),
};

function escapeNonAscii(text: string): string {
  return text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The whole program in one file, so that a process loads only what it uses and an image needs no packages. */
export default defineConfig({
  input: "src/main.ts",
  platform: "node",
  treeshake: true,
  plugins: [embedDocsAssets, escapeLegalComments],
  output: {
    file: "dist/pipe-scaling.js",
    format: "esm",
    sourcemap: true,
    // What is imported lazily still runs lazily; only the file is one.
    codeSplitting: false,
    // One character beyond ASCII, be it in a comment, and each process needs 10 MB more for this very text.
    charset: "ascii",
    comments: { legal: true, jsdoc: false },
    minify: false,
  },
});
