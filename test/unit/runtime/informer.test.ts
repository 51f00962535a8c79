import { it } from "vitest";
import { allSynced, type Informer } from "../../../src/runtime/informer.ts";

const NEVER: Informer = {
  resource: "things",
  synced: new Promise(() => undefined),
  isSynced: false,
  lastContact: Number.NEGATIVE_INFINITY,
  run: async () => undefined,
};

it("a process that waits for its caches stops waiting when it has to end, before or after it begins to wait", async () => {
  await allSynced([NEVER], AbortSignal.abort());
  const ending = new AbortController();
  const waiting = allSynced([NEVER], ending.signal);
  ending.abort();
  await waiting;
});
