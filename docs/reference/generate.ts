import { writeFileSync } from "node:fs";
import { generated } from "./generated.ts";

/** `npm run generate`: writes the pages of the reference. A test fails when one drifts from its sources. */
for (const [path, text] of generated()) writeFileSync(new URL(path, import.meta.url), text);
