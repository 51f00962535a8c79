import { once } from "node:events";
import { runProcess } from "../../../src/run-process.ts";

/*
 * A long-lived process that logs the given number of lines, and then ends in the given way: it returns, fails, or
 * waits for a signal. Standard error shows that it is alive.
 */

const [count = "0", ending = "return"] = process.argv.slice(2);

await runProcess("test", "info", async (log, signal) => {
  for (let line = 0; line < Number(count); line += 1) log.info({ line }, "a line of some length");
  switch (ending) {
    case "reject":
      void Promise.reject(new Error("not handled"));
      await once(signal, "abort");
      break;
    case "throw":
      setImmediate(() => {
        throw new Error("not caught");
      });
      await once(signal, "abort");
      break;
    case "wait": {
      // Keeps the process alive, as a server would.
      const alive = setInterval(() => process.stderr.write("alive\n"), 20);
      await once(signal, "abort");
      clearInterval(alive);
      break;
    }
  }
  log.info("the end");
});
