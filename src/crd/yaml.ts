import { stringify } from "yaml";
import { crdManifest } from "./manifest.ts";

export function crdYaml(): string {
  return `# Generated from src/crd/pipe-scaling.ts by \`npm run generate\`; do not edit.\n${stringify(crdManifest(), { lineWidth: 0 })}`;
}
