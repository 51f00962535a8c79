import { writeFileSync } from "node:fs";
import { generated, generatedParts } from "./generated.ts";

/** `npm run generate`: writes the pages of the reference, and the tables of reasons in others. A test fails when one drifts from its sources. */
for (const [path, text] of [...generated(), ...generatedParts()])
  writeFileSync(new URL(path, import.meta.url), text);
