import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ApiError } from "../../../../src/api/errors.ts";
import { decodeJson, validate } from "../../../../src/api/middleware/json-body.ts";
import { pipeScalingPatch } from "../../../../src/api/resources/pipe-scaling/schema.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";

function decode(text: string): unknown {
  return decodeJson(Buffer.from(text));
}

function refusalOf(run: () => unknown): ApiError {
  try {
    run();
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error;
    throw error;
  }
  throw new Error("nothing was rejected");
}

const PATCH = pipeScalingPatch(sizeOfCores(24));

describe("a JSON body", () => {
  it("is parsed to the value that JSON.parse returns", () => {
    // Compares with JSON.stringify because, like the API, it does not distinguish -0 from 0.
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.stringify(decode(text))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it("is rejected with a 400 if JSON.parse rejects it", () => {
    const alphabet = fc.constantFrom(
      ...'{}[]",:\\u0061tfn-+.eE19 \t\n/*\u00a0\ufeff\u2028'.split(""),
      "true",
      "null",
    );
    fc.assert(
      fc.property(fc.string({ unit: alphabet, maxLength: 30 }), (text) => {
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          refusalOf(() => decode(text));
          return;
        }
        // Valid JSON may be rejected only because of duplicate keys.
        try {
          expect(JSON.stringify(decode(text))).toBe(JSON.stringify(expected));
        } catch (error) {
          expect(String(error)).toContain("occurs twice");
        }
      }),
      { numRuns: 2000 },
    );
  });

  it("of arbitrary bytes is accepted, or rejected with a short message", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => {
        try {
          validate(decodeJson(Buffer.from(bytes)), PATCH);
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError);
          expect(String(error).length).toBeLessThan(520);
        }
      }),
    );
  });
});

describe("a size", () => {
  it("is accepted if and only if the contract allows it, with one field or both", () => {
    const cpu = fc.oneof(
      fc.integer({ min: -1, max: 26 }).map((cores) => cores * 1000),
      fc.integer(),
      fc.double(),
    );
    const memory = fc.oneof(
      fc.integer({ min: -1, max: 26 }).map((cores) => cores * 4),
      fc.integer(),
      fc.double(),
    );
    const body = fc.record({ replicaCpuMillicores: cpu, replicaMemoryGb: memory }, { requiredKeys: [] });
    fc.assert(
      fc.property(body, fc.constantFrom(8, 24, 128), (sent, maximumCores) => {
        const schema = pipeScalingPatch(sizeOfCores(maximumCores));
        const { replicaCpuMillicores, replicaMemoryGb } = sent;
        const cores =
          replicaCpuMillicores === undefined ? (replicaMemoryGb ?? 0) / 4 : replicaCpuMillicores / 1000;
        const legal =
          Number.isInteger(cores) &&
          cores >= 1 &&
          cores <= maximumCores &&
          (replicaMemoryGb === undefined || replicaMemoryGb === cores * 4);
        if (legal) {
          expect(validate(sent, schema)).toEqual({
            cpuMillicores: cores * 1000,
            memoryGib: cores * 4,
          });
        } else {
          refusalOf(() => validate(sent, schema));
        }
      }),
      { numRuns: 2000 },
    );
  });
});
