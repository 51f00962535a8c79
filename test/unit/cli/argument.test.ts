import { describe, expect, test } from "vitest";
import * as z from "zod";
import { argument, declaredArguments } from "../../../src/cli/argument.ts";
import { readOptions, UsageError } from "../../../src/settings/option.ts";
import { integer, oneOf } from "../../../src/settings/values.ts";

const args = z.object({
  pipeCount: argument(integer(1, 9), { description: "how many" }),
  shell: argument(oneOf("bash", "zsh").optional(), { description: "which shell" }),
});

describe("an argument", () => {
  test("is shown with its name, in brackets if it is optional, and with its allowed values", () => {
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

  test("is refused by name, with all that is wrong at once, and has no variable", () => {
    const env = { PIPE_SCALING_PIPE_COUNT: "3" };
    expect(() => readOptions(args, {}, env)).toThrow(new UsageError("<pipe-count> is missing: how many."));
    expect(() => readOptions(args, { pipeCount: "ten", shell: "csh" }, {})).toThrow(
      [
        '<pipe-count> is "ten", but it must be a whole number from 1 to 9.',
        '[shell] is "csh", but it must be bash or zsh.',
      ].join("\n"),
    );
  });

  test("is a programming error if it was not declared by argument(), or follows an optional one", () => {
    expect(() => declaredArguments(z.object({ undeclared: z.string() }))).toThrow(
      "undeclared is not declared",
    );
    const { pipeCount, shell } = args.shape;
    expect(() => declaredArguments(z.object({ shell, pipeCount }))).toThrow("pipeCount comes after");
  });
});
