import { writeFileSync } from "node:fs";
import { generated } from "./generated.ts";

/** `npm run generate`: writes what is generated of the chart. A test fails when it drifts from its sources. */
for (const [path, text] of generated()) writeFileSync(new URL(path, import.meta.url), text);
