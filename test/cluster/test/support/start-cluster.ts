import { writeSync } from "node:fs";
import { startCluster } from "../../cluster.ts";

/** Starts a cluster, for tests of the end of such a process. It waits, or ends on the input "exit" or "throw". */
process.stdin.on("data", (chunk: Buffer) => {
  const command = chunk.toString().trim();
  if (command === "exit") process.exit(7);
  throw new Error(`the input was ${command}`);
});
const cluster = await startCluster({ name: "child" });
writeSync(1, `up: ${cluster.server}\n`);
