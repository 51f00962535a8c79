import { writeSync } from "node:fs";
import { startCluster } from "../../cluster.ts";

/**
 * Starts a cluster in a process of its own, for tests of how such a process ends:
 * it waits for ever, or, told "exit" or "throw", ends itself in that way.
 */
process.stdin.on("data", (chunk: Buffer) => {
  const command = chunk.toString().trim();
  if (command === "exit") process.exit(7);
  throw new Error(`told to ${command}`);
});
const cluster = await startCluster({ name: "child" });
writeSync(1, `up: ${cluster.server}\n`);
