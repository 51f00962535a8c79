import { describe, expect, it } from "vitest";
import { WatchPosition } from "../../../src/runtime/watch-position.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

/** A position that was listed at version 100 and time 0, one minute ago. */
async function listedPosition() {
  const clock = new FakeClock();
  const position = new WatchPosition(clock);
  position.moveToList("100", 0);
  await clock.advance(60_000);
  return { position, clock };
}

describe("a watch position", () => {
  it("needs a list and has no contact before the first list", () => {
    const position = new WatchPosition(new FakeClock());
    expect(position.needsList).toBe(true);
    expect(position.lastSyncResourceVersion).toBeUndefined();
    expect(position.lastContact).toBe(Number.NEGATIVE_INFINITY);
  });

  it("has the version of its list, and the time of its request as the last contact", async () => {
    const { position } = await listedPosition();
    expect(position.needsList).toBe(false);
    expect(position.lastSyncResourceVersion).toBe("100");
    expect(position.lastContact).toBe(0);
  });

  it("advances to the version of each event, and its last contact to the event's time of arrival", async () => {
    const { position } = await listedPosition();
    position.advance("101");
    expect(position.lastSyncResourceVersion).toBe("101");
    expect(position.lastContact).toBe(60_000);
  });

  it("needs a check when it is doubtful, until it was checked", async () => {
    const { position } = await listedPosition();
    expect(position.needsCheck).toBe(false);
    position.requireCheck();
    expect(position.needsCheck).toBe(true);
    position.check("100");
    expect(position.needsCheck).toBe(false);
    expect(position.lastSyncResourceVersion).toBe("100");
  });

  it("makes no contact with the backlog of events that are older than the version at the check", async () => {
    const { position } = await listedPosition();
    position.requireCheck();
    position.check("103");
    position.advance("102");
    expect(position.lastSyncResourceVersion).toBe("102");
    expect(position.lastContact).toBe(0);
    position.advance("103");
    expect(position.lastContact).toBe(60_000);
  });

  it("needs a list if the server's version is older, as after an etcd restore", async () => {
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

  it("keeps its last contact when it is discarded", async () => {
    const { position } = await listedPosition();
    position.advance("101");
    position.discard();
    expect(position.lastContact).toBe(60_000);
  });

  it("moves to an older list, and takes no event after it for backlog", async () => {
    const { position } = await listedPosition();
    position.check("103");
    position.discard();
    position.moveToList("50", 30_000);
    expect(position.lastSyncResourceVersion).toBe("50");
    expect(position.needsCheck).toBe(false);
    position.advance("51");
    expect(position.lastContact).toBe(60_000);
  });

  it("is not doubtful after a list", async () => {
    const { position } = await listedPosition();
    position.requireCheck();
    position.discard();
    position.moveToList("110", 60_000);
    expect(position.needsCheck).toBe(false);
  });
});
