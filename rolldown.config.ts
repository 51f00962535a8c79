import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "rolldown";
import { thirdPartyLicenses } from "./deploy/image/third-party-licenses.ts";
import { DOCS_ASSETS, docsAssetPath, gzippedAsset } from "./src/api/openapi/docs-assets.ts";
import { KUBECTL_COMPLETION, KUBECTL_COMPLETION_SCRIPT } from "./src/cli/completion/kubectl.ts";

/** Writes the files of the docs page, also compressed, and replaces the module that reads them from the packages. */
const docsAssets: Plugin = {
  name: "docs-assets",
  load: {
    filter: { id: /\/src\/api\/openapi\/docs-assets\.ts$/ },
    handler() {
      for (const name of DOCS_ASSETS) {
        this.emitFile({ type: "asset", fileName: `docs/${name}`, source: readFileSync(docsAssetPath(name)) });
        this.emitFile({ type: "asset", fileName: `docs/${name}.gz`, source: gzippedAsset(name) });
      }
      return `
        import { readFileSync } from "node:fs";
        import { fileURLToPath } from "node:url";
        export const DOCS_ASSETS = ${JSON.stringify(DOCS_ASSETS)};
        export function docsAssetPath(name) {
          return fileURLToPath(new URL("../docs/" + name, import.meta.url));
        }
        export function gzippedAsset(name) {
          return readFileSync(docsAssetPath(name) + ".gz");
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

/**
 * The entry point of the package loads all its parts, such as fetch and WebSockets, which cost 4 MB. Only these are used.
 * An import of another one fails the build.
 */
const usedPartsOfUndici: Plugin = {
  name: "used-parts-of-undici",
  load: {
    filter: { id: /\/node_modules\/undici\/index\.js$/ },
    handler: () => ({
      code: `
        import api from "./lib/api/index.js";
        import Dispatcher from "./lib/dispatcher/dispatcher.js";
        // The entry of the package does the same.
        Object.assign(Dispatcher.prototype, api);
        export { default as Agent } from "./lib/dispatcher/agent.js";
        export { default as EnvHttpProxyAgent } from "./lib/dispatcher/env-http-proxy-agent.js";
        export { default as Pool } from "./lib/dispatcher/pool.js";
        export { default as ProxyAgent } from "./lib/dispatcher/proxy-agent.js";
        // For modules of the client library that are not used.
        export const { fetch } = globalThis;`,
      moduleType: "js",
    }),
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

/** Writes the program that kubectl runs to complete its plugin. */
const kubectlCompletion: Plugin = {
  name: "kubectl-completion",
  generateBundle() {
    this.emitFile({ type: "asset", fileName: KUBECTL_COMPLETION, source: KUBECTL_COMPLETION_SCRIPT });
  },
};

/** The whole program, so that an image needs no packages. Modules that are imported lazily have files of their own. */
export default defineConfig({
  input: { "pipe-scaling": "src/main.ts", "kubectl-pipes": "src/kubectl-pipes.ts" },
  platform: "node",
  // The client library has a module for each kind, which reading a kubeconfig does not need. None has side effects.
  treeshake: { moduleSideEffects: (id) => !id.includes("/node_modules/@kubernetes/client-node/") },
  // Otherwise V8 compiles lazy modules eagerly, and keeps the code.
  optimization: { pifeForModuleWrappers: false },
  plugins: [
    docsAssets,
    lazyHttp,
    usedPartsOfUndici,
    escapeLegalComments,
    kubectlCompletion,
    thirdPartyLicenseFile,
  ],
  output: {
    dir: "dist",
    // The extension .mjs makes it an ES module without a package.json.
    entryFileNames: "[name].mjs",
    chunkFileNames: "chunks/[name].mjs",
    format: "esm",
    sourcemap: true,
    // With a single non-ASCII character, even in a comment, V8 stores the source in two bytes per character: 10 MB more.
    charset: "ascii",
    comments: { legal: true, jsdoc: false },
    minify: false,
  },
});
