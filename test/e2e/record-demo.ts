import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { type RecordedLine, recording } from "./demo/recording.ts";

/** `npm run demo:record`: runs the demo, and records the picture in the README. */

const DEMO = fileURLToPath(new URL("demo.ts", import.meta.url));
const PICTURE = fileURLToPath(new URL("../../docs/demo.svg", import.meta.url));

const start = performance.now();
const demo = spawn(process.execPath, [DEMO], {
  env: environment,
  stdio: ["ignore", "pipe", "inherit"],
});
const ended = new Promise<number | null>((resolve) => demo.once("close", resolve));
const lines: RecordedLine[] = [];
for await (const text of createInterface({ input: demo.stdout })) {
  console.log(text);
  lines.push({ text, atMs: Math.round(performance.now() - start) });
}
const code = await ended;
if (code === 0) writeFileSync(PICTURE, recording("Output of npm run demo, in real time", lines));
else console.error("The demo failed, so the picture is unchanged.");
process.exitCode = code ?? 1;
