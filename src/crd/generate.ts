import { writeFileSync } from "node:fs";
import { crdYaml } from "./yaml.ts";

/** `npm run generate`: writes the CRD into crds/. A test fails when the file and the schema drift. */
writeFileSync(new URL("../../crds/pipes.clouddb.dev_pipescalings.yaml", import.meta.url), crdYaml());
