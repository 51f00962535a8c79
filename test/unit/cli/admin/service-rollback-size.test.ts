import { describe, expect, it } from "vitest";
import { findPrevious } from "../../../../src/cli/admin/service-rollback.ts";
import type { HistoryEntry } from "../../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { historyEntry } from "../../../support/fixtures/history-entry.ts";

describe("the previous size", () => {
  const sizeIf = (cores: number | undefined) => (cores === undefined ? undefined : sizeOfCores(cores));
  const find = (history: readonly HistoryEntry[], current: number, to?: number, maximum?: number) =>
    findPrevious(history, { from: sizeOfCores(current), to: sizeIf(to), maximum: sizeIf(maximum) })?.summary;

  it("is the newest other size that every pipe ran", () => {
    expect(find([historyEntry(4), historyEntry(2), historyEntry(1)], 4)).toBe("2 cpu / 8 Gi");
  });

  it("is neither a size that failed nor one that was superseded", () => {
    const history = [
      historyEntry(24, { result: "Failed" }),
      historyEntry(16, { result: "Superseded" }),
      historyEntry(8, { result: "Progressing" }),
      historyEntry(2),
    ];
    expect(find(history, 24)).toBe("2 cpu / 8 Gi");
  });

  it("skips further requests for the current size", () => {
    expect(find([historyEntry(4, { requestId: "request-2" }), historyEntry(4), historyEntry(1)], 4)).toBe(
      "1 cpu / 4 Gi",
    );
  });

  it("is the newest size in the history while the controller has not observed the current one", () => {
    expect(find([historyEntry(4), historyEntry(2)], 8)).toBe("4 cpu / 16 Gi");
  });

  it("is never the size of a boost", () => {
    for (const source of ["Boost", "TierLimit"] as const) {
      const boosted = historyEntry(16, { source, boost: true });
      expect(find([historyEntry(4), boosted, historyEntry(2)], 4)).toBe("2 cpu / 8 Gi");
      expect(find([historyEntry(4), boosted], 4, 16)).toBeUndefined();
    }
  });

  it("is never larger than the maximum of the tier", () => {
    const limited = historyEntry(8, { source: "TierLimit" });
    const history = [limited, historyEntry(16), historyEntry(4)];
    expect(find(history, 8, undefined, 8)).toBe("4 cpu / 16 Gi");
    expect(find([limited, historyEntry(16)], 8, undefined, 8)).toBeUndefined();
    // The controller has not observed the current size yet.
    expect(find(history, 2, undefined, 8)).toBe("8 cpu / 32 Gi");
    const odd = { replicaCpuMillicores: 4000, replicaMemoryGb: 64, summary: "4 cpu / 64 Gi" };
    expect(find([limited, historyEntry(4, odd)], 8, undefined, 8)).toBeUndefined();
  });

  it("is absent if every pipe ran only the current size", () => {
    expect(find([historyEntry(4)], 4)).toBeUndefined();
    expect(find([], 4)).toBeUndefined();
  });

  it("can be a specific older size if every pipe ran it", () => {
    const history = [
      historyEntry(4),
      historyEntry(3),
      historyEntry(2, { result: "Superseded" }),
      historyEntry(1),
    ];
    expect(find(history, 4, 1)).toBe("1 cpu / 4 Gi");
    expect(find(history, 4, 2)).toBeUndefined();
  });
});
