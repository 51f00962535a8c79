import { describe, expect, it } from "vitest";
import { WatchPosition } from "../../../src/runtime/watch-position.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

/** A position with a list at version 100 and time 0; the time is now one minute later. */
async function listedPosition() {
  const clock = new FakeClock();
  const position = new WatchPosition(clock);
  position.moveToList("100", 0);
  await clock.advance(60_000);
  return { position, clock };
}

describe("a watch position", () => {
  it("needs a list and has no last contact before the first list", () => {
    const position = new WatchPosition(new FakeClock());
    expect(position.needsList).toBe(true);
    expect(position.lastSyncResourceVersion).toBeUndefined();
    expect(position.lastContact).toBe(Number.NEGATIVE_INFINITY);
  });

  it("has the version of its list, and the time of the list request as the last contact", async () => {
    const { position } = await listedPosition();
    expect(position.needsList).toBe(false);
    expect(position.lastSyncResourceVersion).toBe("100");
    expect(position.lastContact).toBe(0);
  });

  it("advances to the version of each event, and the last contact advances to the arrival time of the event", async () => {
    const { position } = await listedPosition();
    position.advance("101");
    expect(position.lastSyncResourceVersion).toBe("101");
    expect(position.lastContact).toBe(60_000);
  });

  it("needs a check from the time that a check is required until the check is done", async () => {
    const { position } = await listedPosition();
    expect(position.needsCheck).toBe(false);
    position.requireCheck();
    expect(position.needsCheck).toBe(true);
    position.check("100");
    expect(position.needsCheck).toBe(false);
    expect(position.lastSyncResourceVersion).toBe("100");
  });

  it("does not count the backlog of events that are older than the version at the check as contact", async () => {
    const { position } = await listedPosition();
    position.requireCheck();
    position.check("103");
    position.advance("102");
    expect(position.lastSyncResourceVersion).toBe("102");
    expect(position.lastContact).toBe(0);
    position.advance("103");
    expect(position.lastContact).toBe(60_000);
  });

  it("needs a list if the version of the server is older, as after an etcd restore", async () => {
    const { position } = await listedPosition();
    position.requireCheck();
    position.check("99");
    expect(position.needsList).toBe(true);
    expect(position.needsCheck).toBe(false);
  });

  it("needs a list instead of a check after it was discarded", async () => {
    const { position } = await listedPosition();
    position.requireCheck();
    position.discard();
    expect(position.needsList).toBe(true);
    expect(position.needsCheck).toBe(false);
  });

  it("needs a list if a watch ends 90 s after the last contact, but not earlier", async () => {
    const { position, clock } = await listedPosition();
    await clock.advance(29_999);
    position.endWatch();
    expect(position.needsList).toBe(false);
    await clock.advance(1);
    position.endWatch();
    expect(position.needsList).toBe(true);
  });

  it("does not count a check as contact, because the events before the server's version may be missing", async () => {
    const { position, clock } = await listedPosition();
    position.requireCheck();
    position.check("103");
    await clock.advance(30_000);
    position.endWatch();
    expect(position.needsList).toBe(true);
  });

  it("keeps its last contact when it is discarded", async () => {
    const { position } = await listedPosition();
    position.advance("101");
    position.discard();
    expect(position.lastContact).toBe(60_000);
  });

  it("moves to an older list, and does not treat later events as backlog", async () => {
    const { position } = await listedPosition();
    position.check("103");
    position.discard();
    position.moveToList("50", 30_000);
    expect(position.lastSyncResourceVersion).toBe("50");
    expect(position.needsCheck).toBe(false);
    position.advance("51");
    expect(position.lastContact).toBe(60_000);
  });

  it("needs no check after a list", async () => {
    const { position } = await listedPosition();
    position.requireCheck();
    position.discard();
    position.moveToList("110", 60_000);
    expect(position.needsCheck).toBe(false);
  });
});
