import { writeFileSync } from "node:fs";
import { generated } from "./generated.ts";

/** `npm run generate`: writes the generated files of the chart. A test fails if they differ from their sources. */
for (const [path, text] of generated()) writeFileSync(new URL(path, import.meta.url), text);
