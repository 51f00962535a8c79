import { describe, expect, it } from "vitest";
import { API_FALLBACK_REASONS, fallbackSentence } from "../../../src/api/cluster/fallback-reasons.ts";
import { REASONS, sentenceOf } from "../../../src/api/cluster/reasons.ts";
import { ERRORS, type ErrorFacts, type ErrorReason } from "../../../src/api/error-table.ts";
import { apiError } from "../../../src/api/errors.ts";
import { errorText } from "../../../src/api/middleware/error-text.ts";
import { BACKUP_RULES } from "../../../src/domain/backup-policy.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";

/** Facts for each reason whose sentence needs some. */
const FACTS: { readonly [R in ErrorReason as ErrorFacts[R] extends [] ? never : R]: ErrorFacts[R] } = {
  RoleMissing: ["admin", ["developer"]],
  KeyTooFast: ["3"],
  AddressTooFast: ["3"],
  MethodNotAllowed: ["GET, HEAD"],
  MethodUnknown: ["GET, HEAD"],
  NotUuid: ["serviceId"],
  BodyType: [["application/json", "application/merge-patch+json"]],
  BodyTooLong: [65_536],
  TooManyChunks: [1024],
  BodyNotJson: ["Unexpected token at position 3"],
  BodyInvalid: ["replicaMemoryGb must be a number"],
  AboveTier: [sizeOfCores(8)],
  BoostEnd: ["must be in the future: it is now 2026-01-31T20:00:00.000Z"],
  BackupContradiction: [BACKUP_RULES[0] ?? { field: "", condition: "", remedy: "" }],
  PolicyDenied: ["this size"],
};

function sentencesOf(): (readonly [reason: string, sentence: string])[] {
  const facts: Readonly<Record<string, readonly unknown[]>> = FACTS;
  return Object.entries(ERRORS).map(([reason, { sentence }]) => [
    reason,
    Reflect.apply(sentence, undefined, facts[reason] ?? []),
  ]);
}

describe("the table of errors", () => {
  it.each(sentencesOf())("has a complete sentence for %s", (_reason, sentence) => {
    expect(sentence).toMatch(/^[A-Za-z].*[^.]\.$/);
    expect(errorText(sentence)).toBe(sentence);
  });

  it("has the same sentence for no two reasons", () => {
    const sentences = sentencesOf().map(([, sentence]) => sentence);
    expect(new Set(sentences).size).toBe(sentences.length);
  });

  it("does not describe a path that does not exist like an object that does not exist", () => {
    const objects = (["NoSuchOrganization", "NoSuchService", "NoSuchMember"] as const).map((reason) =>
      ERRORS[reason].sentence(),
    );
    for (const sentence of objects) expect(sentence).toMatch(/^There is no such /);
    expect(ERRORS.NoSuchPath.sentence()).toMatch(/^This API has no such path: /);
  });

  it.each([
    [[], "no role"],
    [["developer"], "the role developer"],
    [["billing", "audit"], "the role billing, audit"],
  ])("names the role that is needed, and for a key with the roles %j also these", (roles, given) => {
    const { status, message } = apiError("RoleMissing", "admin", roles);
    expect([status, message]).toEqual([
      403,
      `The roles of this key do not allow this operation: it needs the role admin, and this key has ${given}.`,
    ]);
  });
});

describe("a sentence about the state of a pipe", () => {
  it.each([...REASONS.map(sentenceOf), ...API_FALLBACK_REASONS.map(fallbackSentence)])(
    "is complete: %s",
    (sentence) => {
      expect(sentence).toMatch(/^[A-Z].*[^.]\.$/);
    },
  );
});

describe("an error", () => {
  it("with the status 503 suggests a wait, of at most a minute", () => {
    const waits = [undefined, 0, 1200, 3_600_000].map(
      (retryAfterMs) => apiError("Unavailable").with({ retryAfterMs }).headers["Retry-After"],
    );
    expect(waits).toEqual(["5", "1", "2", "60"]);
    expect(apiError("NoSuchService").headers).toEqual({});
  });
});
