import { defineConfig, type Plugin } from "rolldown";
import { thirdPartyLicenses } from "./deploy/image/third-party-licenses.ts";
import { DOCS_ASSETS, docsAssetPath, gzippedAsset } from "./src/api/openapi/docs-assets.ts";

/** Replaces the module that reads the files of the docs page with one that contains them. It decodes them on request. */
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
 * An import of node:http reads all its exports, which loads Node's own copy of undici and costs memory and time.
 * As an object, the module loads only the exports that are used.
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

/** Escapes license comments, which `charset` does not: they contain names of authors. */
const escapeLegalComments: Plugin = {
  name: "escape-legal-comments",
  renderChunk: (code) => ({ code: code.replace(/\/\*!.*?\*\//gs, escapeNonAscii), map: null }),
};

function escapeNonAscii(text: string): string {
  return text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Writes the license texts of the bundled packages beside the bundle. */
const thirdPartyLicenseFile: Plugin = {
  name: "third-party-licenses",
  generateBundle(_options, bundle) {
    const chunks = Object.values(bundle).filter((file) => file.type === "chunk");
    const files = [...chunks.flatMap(({ moduleIds }) => moduleIds), ...DOCS_ASSETS.map(docsAssetPath)];
    const source = thirdPartyLicenses(files);
    this.emitFile({ type: "asset", fileName: "THIRD-PARTY-LICENSES.txt", source });
  },
};

/** The whole program in one file, so that a process loads only what it uses and an image needs no packages. */
export default defineConfig({
  input: "src/main.ts",
  platform: "node",
  // The client library has a module for each kind, which reading a kubeconfig does not need. None has side effects.
  treeshake: { moduleSideEffects: (id) => !id.includes("/node_modules/@kubernetes/client-node/") },
  // Otherwise V8 compiles lazy modules eagerly, and keeps the code.
  optimization: { pifeForModuleWrappers: false },
  plugins: [embedDocsAssets, lazyHttp, writeFileAtomicPath, escapeLegalComments, thirdPartyLicenseFile],
  output: {
    file: "dist/pipe-scaling.js",
    format: "esm",
    sourcemap: true,
    // Modules that are imported lazily still run lazily, in the same file.
    codeSplitting: false,
    // With a single non-ASCII character, even in a comment, V8 stores the source in two bytes per character: 10 MB more.
    charset: "ascii",
    comments: { legal: true, jsdoc: false },
    minify: false,
  },
});
