import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  backupConfiguration,
  backupConfigurationPatch,
  toBackupConfiguration,
} from "../../../src/api/resources/backup/schema.ts";
import {
  BACKUP_PERIODS_HOURS,
  BACKUP_RULES,
  type BackupChange,
  type BackupPolicy,
  changeBackupPolicy,
  DEFAULT_BACKUP_POLICY,
} from "../../../src/domain/backup-policy.ts";
import { backupConfigMap, backupData, parseBackup } from "../../../src/records/backup.ts";

const SERVICE = "22222222-2222-4222-8222-222222222222";

const period = fc.constantFrom(...BACKUP_PERIODS_HOURS);
const retention = fc.integer({ min: 1, max: 45 }).map((days) => days * 24);
const startTime = fc
  .tuple(fc.integer({ min: 0, max: 23 }), fc.boolean())
  .map(([hour, isPadded]) => `${isPadded ? String(hour).padStart(2, "0") : hour}:00`);

const policy: fc.Arbitrary<BackupPolicy> = fc
  .record({
    periodInHours: period,
    retentionPeriodInHours: retention,
    startTime: fc.option(startTime, { nil: undefined }),
  })
  .filter((policy) => brokenIn(policy).length === 0);

function brokenIn(policy: BackupPolicy): string[] {
  return BACKUP_RULES.filter(({ isMet }) => !isMet(policy)).map(({ field }) => field);
}

function sent<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null | undefined> {
  return fc.oneof(value, fc.constant(null), fc.constant(undefined));
}

const change: fc.Arbitrary<BackupChange> = fc.record({
  periodInHours: sent(period),
  retentionPeriodInHours: sent(retention),
  startTime: sent(startTime),
});

const FIELDS = ["periodInHours", "retentionPeriodInHours", "startTime"] as const;

describe("a change to the backup policy", () => {
  it("sets the fields in the request, resets null fields, and keeps other fields unless the period conflicts with the start time", () => {
    fc.assert(
      fc.property(policy, change, (before, wanted) => {
        const after = changeBackupPolicy(before, wanted);
        const isStartTimeAlone = typeof wanted.startTime === "string" && wanted.periodInHours === undefined;
        for (const field of FIELDS) {
          const value = wanted[field];
          const isRetention = field === "retentionPeriodInHours" && typeof value !== "number";
          if (isRetention && (value === null || typeof wanted.periodInHours === "number")) {
            const kept = value === null ? 24 : before.retentionPeriodInHours;
            expect(after.retentionPeriodInHours).toBe(Math.max(kept, after.periodInHours > 24 ? 48 : 24));
          } else if (value === null) expect(after[field]).toBe(DEFAULT_BACKUP_POLICY[field]);
          else if (value !== undefined) expect(after[field]).toBe(value);
          else if (field === "periodInHours" && isStartTimeAlone)
            expect(after[field]).toBe(before[field] === 48 ? 48 : 24);
          else expect(after[field]).toBe(before[field]);
        }
      }),
    );
  });

  it.each([
    ...[6, 8, 12, 16, 20, 36].map((stored) => [stored, 24] as const),
    ...([
      [24, 24],
      [48, 48],
    ] as const),
  ])("changes a stored period of %i hours to %i hours if it sets only the start time", (stored, expected) => {
    const before = { ...DEFAULT_BACKUP_POLICY, periodInHours: stored };
    const after = changeBackupPolicy(before, { startTime: "3:00" });
    expect(after).toEqual({ ...before, periodInHours: expected, startTime: "3:00" });
  });

  it("leaves a start time with an incompatible period only if the request contains that period", () => {
    fc.assert(
      fc.property(policy, change, (before, wanted) => {
        const after = changeBackupPolicy(before, wanted);
        const isWrong = after.startTime !== undefined && ![24, 48].includes(after.periodInHours);
        expect(brokenIn(after).includes("backupStartTime")).toBe(isWrong);
        if (isWrong) expect(wanted.periodInHours).toBe(after.periodInHours);
      }),
    );
  });

  it("leaves a retention that is shorter than the period only if the request contains one of the two", () => {
    fc.assert(
      fc.property(policy, change, (before, wanted) => {
        const after = changeBackupPolicy(before, wanted);
        const isShorter = after.retentionPeriodInHours < after.periodInHours;
        expect(brokenIn(after).includes("backupRetentionPeriodInHours")).toBe(isShorter);
        const isSent = wanted.periodInHours !== undefined || wanted.retentionPeriodInHours !== undefined;
        if (isShorter) expect(isSent).toBe(true);
      }),
    );
  });

  it.each([
    [{ periodInHours: 48 }, 48],
    [{ periodInHours: 36, retentionPeriodInHours: null }, 48],
    [{ periodInHours: 20 }, 24],
    [{ periodInHours: 48, retentionPeriodInHours: 24 }, 24],
    [{ startTime: "3:00" }, 24],
  ])("%o raises a retention of 24 hours, unless it is sent: %i", (wanted, expected) => {
    expect(changeBackupPolicy(DEFAULT_BACKUP_POLICY, wanted).retentionPeriodInHours).toBe(expected);
  });

  it("changes nothing when it is repeated", () => {
    fc.assert(
      fc.property(policy, change, (before, wanted) => {
        const after = changeBackupPolicy(before, wanted);
        expect(changeBackupPolicy(after, wanted)).toEqual(after);
      }),
    );
  });

  it("restores the defaults if it sets all three fields to null", () => {
    fc.assert(
      fc.property(policy, (before) => {
        const reset = { periodInHours: null, retentionPeriodInHours: null, startTime: null };
        expect(changeBackupPolicy(before, reset)).toEqual(DEFAULT_BACKUP_POLICY);
      }),
    );
  });
});

describe("the record of a backup policy", () => {
  it("is read back unchanged, and contains only values that differ from the defaults", () => {
    fc.assert(
      fc.property(policy, (given) => {
        const { metadata, data } = backupConfigMap(SERVICE, SERVICE, given);
        expect(parseBackup(metadata.name, Object.fromEntries(Object.entries(data).map(text)))).toEqual({
          ok: true,
          value: given,
        });
        expect(Object.keys(data)).toHaveLength(
          FIELDS.filter((field) => given[field] !== DEFAULT_BACKUP_POLICY[field]).length,
        );
        // A patch contains every key, so that no old value remains.
        expect(Object.keys(backupData(given))).toHaveLength(FIELDS.length);
      }),
    );
  });

  it.each([{ backupPeriodInHours: "36" }, { backupPeriodInHours: "48", backupRetentionPeriodInHours: "24" }])(
    "of an earlier version, %j, has the shortest retention with which there always is a backup",
    (data) => {
      const parsed = parseBackup(`backup-${SERVICE}`, data);
      expect(parsed).toMatchObject({ ok: true, value: { retentionPeriodInHours: 48 } });
    },
  );

  it.each([
    [{ backupPeriodInHours: "7" }, "backupPeriodInHours"],
    [{ backupPeriodInHours: "24h" }, "backupPeriodInHours"],
    [{ backupPeriodInHours: "" }, "backupPeriodInHours"],
    [{ backupRetentionPeriodInHours: "25" }, "backupRetentionPeriodInHours"],
    [{ backupRetentionPeriodInHours: "0" }, "backupRetentionPeriodInHours"],
    [{ backupRetentionPeriodInHours: "1104" }, "backupRetentionPeriodInHours"],
    [{ backupStartTime: "24:00" }, "backupStartTime"],
    [{ backupStartTime: "10:00\n" }, "backupStartTime"],
    [{ backupPeriodInHours: "12", backupStartTime: "10:00" }, "24 or 48"],
  ])("is malformed if it contains %j", (data, problem) => {
    expect(parseBackup(`backup-${SERVICE}`, data)).toEqual({
      ok: false,
      problem: expect.stringContaining(problem),
    });
  });

  it("is malformed if its name does not contain a service", () => {
    expect(parseBackup("backup-unknown", {}).ok).toBe(false);
  });
});

function text([key, value]: [string, string | null]): [string, string] {
  return [key, value ?? "null"];
}

describe("the backup configuration on the wire", () => {
  it.each([6, 8, 12, 16, 20, 36])("rejects a start time combined with a period of %i hours", (hours) => {
    const { error } = backupConfigurationPatch.safeParse({
      backupPeriodInHours: hours,
      backupStartTime: "3:00",
    });
    expect(error?.issues).toContainEqual(
      expect.objectContaining({
        path: ["backupStartTime"],
        message: "is allowed only with a backupPeriodInHours of 24 or 48",
      }),
    );
  });

  it.each([
    [{ backupPeriodInHours: 48, backupRetentionPeriodInHours: 24 }, false],
    [{ backupPeriodInHours: 36, backupRetentionPeriodInHours: 24 }, false],
    [{ backupPeriodInHours: 36, backupRetentionPeriodInHours: null }, true],
    [{ backupPeriodInHours: 36, backupRetentionPeriodInHours: 48 }, true],
    [{ backupPeriodInHours: 48, backupRetentionPeriodInHours: 48 }, true],
    // A stored retention can be long enough.
    [{ backupPeriodInHours: 48 }, true],
    [{ backupPeriodInHours: null, backupRetentionPeriodInHours: 24 }, true],
  ])("%j has a retention that is not shorter than the period: %s", (body, isAccepted) => {
    expect(backupConfigurationPatch.safeParse(body).success).toBe(isAccepted);
  });

  it("matches its schema for every policy, and is itself a valid change", () => {
    fc.assert(
      fc.property(policy, (given) => {
        const object = backupConfiguration.parse(toBackupConfiguration(given));
        expect("backupStartTime" in object).toBe(given.startTime !== undefined);
        const again = backupConfigurationPatch.parse(object);
        expect(changeBackupPolicy(DEFAULT_BACKUP_POLICY, again)).toEqual(given);
      }),
    );
  });
});
