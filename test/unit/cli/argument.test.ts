import { describe, expect, test } from "vitest";
import { argument } from "../../../src/cli/options.ts";
import { argumentTerm, declaredOptions, readOptions, UsageError } from "../../../src/settings/option.ts";
import { integer, oneOf } from "../../../src/settings/values.ts";

const args = {
  pipeCount: argument(integer(1, 9), "how many"),
  shell: argument(oneOf("bash", "zsh").optional(), "which shell"),
};

describe("an argument", () => {
  test("is shown with its name, in square brackets if it is optional, and with its allowed values", () => {
    const declared = declaredOptions(args);
    expect(declared.map(argumentTerm)).toEqual(["<pipe-count>", "[shell]"]);
    expect(declared).toMatchObject([
      { key: "pipeCount", required: true, description: "how many", flag: undefined, variable: undefined },
      { key: "shell", required: false, description: "which shell", choices: ["bash", "zsh"] },
    ]);
  });

  test("is named in validation errors, which are all reported, and has no environment variable", () => {
    const env = { PIPE_SCALING_PIPE_COUNT: "3" };
    expect(() => readOptions(args, {}, env)).toThrow(new UsageError("<pipe-count> is missing: how many."));
    expect(() => readOptions(args, { pipeCount: "ten", shell: "csh" }, {})).toThrow(
      [
        '<pipe-count> is "ten", but it must be a whole number from 1 to 9.',
        '[shell] is "csh", but it must be bash or zsh.',
      ].join("\n"),
    );
  });
});
