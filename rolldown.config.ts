import { defineConfig, type Plugin } from "rolldown";
import { DOCS_ASSETS, gzippedAsset } from "./src/api/openapi/docs-assets.ts";

/** The module that reads the files of the docs page as one that has them. They are decoded when asked for. */
const embedDocsAssets: Plugin = {
  name: "embed-docs-assets",
  load: {
    filter: { id: /\/src\/api\/openapi\/docs-assets\.ts$/ },
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

const HTTP = /^(?:node:)?(https?)$/;
const BUILT_IN = "\0built-in:";

/**
 * To import node:http is to ask for all that it exports, of which some is Node's own copy of undici: memory and
 * time that no process here has a use for. Asked for as an object, it loads what is used.
 */
const lazyHttp: Plugin = {
  name: "lazy-http",
  resolveId: {
    filter: { id: HTTP },
    handler: (id) => BUILT_IN + id.replace(HTTP, "$1"),
  },
  load: {
    filter: { id: new RegExp(`^${BUILT_IN}`) },
    handler: (id) => ({
      code: `module.exports = process.getBuiltinModule("node:${id.slice(BUILT_IN.length)}");`,
      moduleType: "js",
    }),
  },
};

/** The package derives the names of temporary files from its own path, which an ES module has no variable for. */
const writeFileAtomicPath: Plugin = {
  name: "write-file-atomic-path",
  transform: {
    filter: { id: /\/node_modules\/write-file-atomic\// },
    handler: (code) => ({ code: code.replaceAll("__filename", '"write-file-atomic"'), map: null }),
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
  // The client library is one module for each kind of Kubernetes, of which kubeconfigs need none; none does
  // anything when it is loaded.
  treeshake: { moduleSideEffects: (id) => !id.includes("/node_modules/@kubernetes/client-node/") },
  // Else V8 compiles at once, and keeps, what is only run when it is asked for.
  optimization: { pifeForModuleWrappers: false },
  plugins: [embedDocsAssets, lazyHttp, writeFileAtomicPath, escapeLegalComments],
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
