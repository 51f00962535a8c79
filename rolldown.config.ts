import { defineConfig } from "rolldown";

/** The whole program in one file, so that a process loads only what it uses and an image needs no packages. */
export default defineConfig({
  input: "src/main.ts",
  platform: "node",
  treeshake: true,
  output: {
    file: "dist/pipe-scaling.js",
    format: "esm",
    sourcemap: true,
    // What is imported lazily still runs lazily; only the file is one.
    codeSplitting: false,
    minify: false,
  },
});
