import { writeFileSync } from "node:fs";
import { plainManifests } from "./plain-manifests.ts";

/** `npm run generate`: writes the chart's objects for those without Helm. A test fails when they drift. */
writeFileSync(new URL("install.yaml", import.meta.url), await plainManifests());
