import { writeSync } from "node:fs";
import { atExit } from "../../at-exit.ts";

/** A process with a cleanup and another handler of Ctrl-C, which does not end it. */
atExit(() => writeSync(1, "cleaned\n"));
process.on("SIGINT", () => writeSync(1, "ignored\n"));
setInterval(() => undefined, 1e9);
writeSync(1, "ready\n");
