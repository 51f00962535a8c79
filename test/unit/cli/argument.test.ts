import { describe, expect, test } from "vitest";
import * as z from "zod";
import { argument, declaredArguments, readArguments } from "../../../src/cli/argument.ts";
import { UsageError } from "../../../src/settings/option.ts";
import { integer, oneOf } from "../../../src/settings/values.ts";

const args = z.object({
  pipeCount: argument(integer(1, 9), { description: "how many" }),
  shell: argument(oneOf("bash", "zsh").optional(), { description: "which shell" }),
});

describe("an argument", () => {
  test("is told by its name, in brackets if it may be left out, and has the few values that it may have", () => {
    expect(declaredArguments(args)).toEqual([
      { key: "pipeCount", term: "<pipe-count>", required: true, description: "how many", choices: undefined },
      {
        key: "shell",
        term: "[shell]",
        required: false,
        description: "which shell",
        choices: ["bash", "zsh"],
      },
    ]);
  });

  test("is known by its place", () => {
    expect(readArguments(args, ["3", "zsh"])).toEqual({ pipeCount: 3, shell: "zsh" });
    expect(readArguments(args, ["3"])).toEqual({ pipeCount: 3 });
  });

  test("is refused by name, with all that is wrong at once", () => {
    expect(() => readArguments(args, [])).toThrow(new UsageError("<pipe-count> is missing: how many."));
    expect(() => readArguments(args, ["ten", "csh"])).toThrow(
      [
        '<pipe-count> is "ten", but it must be a whole number from 1 to 9.',
        '[shell] is "csh", but it must be bash or zsh.',
      ].join("\n"),
    );
  });

  test("that was not declared by argument(), or comes after one that may be left out, is a fault of ours", () => {
    expect(() => declaredArguments(z.object({ stray: z.string() }))).toThrow("stray is not declared");
    const { pipeCount, shell } = args.shape;
    expect(() => declaredArguments(z.object({ shell, pipeCount }))).toThrow("pipeCount comes after");
  });
});
