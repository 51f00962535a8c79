import { expect, it } from "vitest";
import { dropLog } from "../../../src/telemetry/drop-log.ts";
import { createLogger } from "../../../src/telemetry/log.ts";

it("the log of dropped connections has a line every 10 s at most, with the number since the last line", () => {
  let now = 0;
  const lines: { readonly dropped: number }[] = [];
  const log = createLogger("info", "test", { write: (line) => lines.push(JSON.parse(line)) });
  const drop = dropLog({ log, monotonic: () => now, listener: "api" });
  for (now of [0, 9999, 9999, 10_000, 20_000]) drop("evicted", "127.0.0.1");
  expect(lines.map(({ dropped }) => dropped)).toEqual([1, 3, 1]);
});
