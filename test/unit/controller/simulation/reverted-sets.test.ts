import { describe, expect, it } from "vitest";
import { HeldSet } from "../../../support/simulation/held-set.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** The size is reapplied after 0, 10 and 60 s. */
const MOST_WRITES = 4;

/** Each is a check that fails before the pod gets the size in place. */
const FAILED_CHECKS: readonly [string, () => Promise<HeldSet>][] = [
  [
    "a search for room",
    async () => {
      const held = await HeldSet.start({ replicas: 1 });
      held.deferResizes();
      held.request(4);
      await held.run(3 * MINUTE);
      expect(held.simulation.condition(1)?.message).toContain("no other node is large enough");
      held.grantResizes();
      return held;
    },
  ],
  [
    "the dry run of a rollout",
    async () => {
      const held = await HeldSet.start({ replicas: 1, strategy: "Rollout" });
      held.refuse("statefulsets a");
      held.request(4);
      await held.run(4 * MINUTE);
      expect(held.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "Refused" });
      held.heal();
      held.simulation.setStrategy(1, "InPlace");
      return held;
    },
  ],
];

describe.each(FAILED_CHECKS)(
  "an owner that sets the old size of a StatefulSet again, after %s failed and the size was applied in place",
  (_, start) => {
    it("causes few writes after the delays of a field conflict, which is reported", async () => {
      const held = await start();
      await held.run(10 * MINUTE);
      held.expectSettled(4);
      const owner = held.keepInTemplate(1, 20 * SECOND);
      const reasons = new Set<string | undefined>();
      held.setSize(1);
      for (let ms = 0; ms < 4 * MINUTE; ms += SECOND) {
        await held.run(SECOND);
        reasons.add(held.simulation.condition(1)?.reason);
      }
      expect(owner.reverts).toBe(MOST_WRITES - 1);
      expect(held.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
      expect([...reasons]).not.toContain("NoNodeHasRoom");
      expect([...reasons]).not.toContain("Refused");
      await held.run(2 * HOUR);
      expect(owner.reverts).toBe(MOST_WRITES - 1);
    });
  },
);
