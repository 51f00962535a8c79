import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { apiSettings } from "../../../src/settings/api.ts";
import { controllerSettings } from "../../../src/settings/controller.ts";
import {
  declaredOptions,
  flagOf,
  option,
  readOptions,
  UsageError,
  variableOf,
  withoutUnit,
} from "../../../src/settings/option.ts";
import { integer, onOff } from "../../../src/settings/values.ts";

const options = {
  count: option(integer(1, 9), { placeholder: "n", description: "how many", default: "5" }),
  ownName: option(z.string(), { placeholder: "text", description: "what it is called" }),
  isLoud: option(onOff.optional(), { description: "whether it shouts" }),
};

describe("an option", () => {
  test("has a flag and a variable that are derived from its key", () => {
    expect(flagOf("opsPort")).toBe("--ops-port");
    expect(variableOf("opsPort")).toBe("PIPE_SCALING_OPS_PORT");
  });

  test("is required if neither its default nor its schema allows it to be absent", () => {
    const required = declaredOptions(options).map(({ key, required }) => [key, required]);
    expect(required).toEqual([
      ["count", false],
      ["ownName", true],
      ["isLoud", false],
    ]);
  });

  test("prefers the flag to the variable, and the variable to the default", () => {
    const env = { PIPE_SCALING_COUNT: "3", PIPE_SCALING_OWN_NAME: "env" };
    expect(readOptions(options, { count: "2", ownName: "flag" }, env)).toEqual({ count: 2, ownName: "flag" });
    expect(readOptions(options, {}, env)).toEqual({ count: 3, ownName: "env" });
    expect(readOptions(options, {}, { PIPE_SCALING_OWN_NAME: "env" })).toEqual({ count: 5, ownName: "env" });
  });

  test("treats an empty variable as absent, but not an empty flag", () => {
    const env = { PIPE_SCALING_COUNT: "", PIPE_SCALING_OWN_NAME: "env" };
    expect(readOptions(options, {}, env).count).toBe(5);
    expect(() => readOptions(options, { count: "" }, env)).toThrow('--count (or PIPE_SCALING_COUNT) is ""');
  });

  test("is not read from the environment if it is a flag only", () => {
    const flagOnly = {
      tier: option(z.string().optional(), { placeholder: "name", description: "its tier", flagOnly: true }),
    };
    expect(readOptions(flagOnly, {}, { PIPE_SCALING_TIER: "scale" })).toEqual({});
    expect(readOptions(flagOnly, { tier: "basic" }, {})).toEqual({ tier: "basic" });
  });

  test("is rejected with its name and all validation errors", () => {
    const read = () => readOptions(options, { count: "ten" }, { PIPE_SCALING_IS_LOUD: "yes" });
    expect(read).toThrow(UsageError);
    expect(read).toThrow(
      [
        '--count (or PIPE_SCALING_COUNT) is "ten", but it must be a whole number from 1 to 9.',
        "--own-name (or PIPE_SCALING_OWN_NAME) is missing: what it is called.",
        '--is-loud (or PIPE_SCALING_IS_LOUD) is "yes", but it must be true or false.',
      ].join("\n"),
    );
  });

  test("is rejected without its value if that can contain a secret", () => {
    const withSecrets = {
      address: option(integer(1, 9), { placeholder: "url", description: "where it is" }),
      keyId: option(integer(1, 9), { placeholder: "id", description: "which one", unquoted: true }),
    };
    const env = { PIPE_SCALING_ADDRESS: "https://me:hunter2@x/v1/traces" };
    expect(() => readOptions(withSecrets, { keyId: "me:hunter2" }, env)).toThrow(
      [
        "--address (or PIPE_SCALING_ADDRESS) is invalid: it must be a whole number from 1 to 9.",
        "--key-id (or PIPE_SCALING_KEY_ID) is invalid: it must be a whole number from 1 to 9.",
      ].join("\n"),
    );
    expect(() => readOptions(withSecrets, { address: "https://x" }, {})).toThrow(' is "https://x", but it');
  });

  test("throws a programming error if it was not declared with option()", () => {
    expect(() => declaredOptions({ undeclared: z.string() })).toThrow("undeclared is not declared");
  });

  test.each([
    ["api", apiSettings],
    ["controller", controllerSettings],
  ])("of the %s process has a unique flag and variable that are derived from its key", (_, declared) => {
    const all = declaredOptions(declared);
    const back = (name: string) =>
      name
        .replace(/^(--|PIPE_SCALING_)/, "")
        .toLowerCase()
        .replace(/[-_]([a-z])/g, (_match, letter: string) => letter.toUpperCase());
    for (const { key, flag = "", variable = "" } of all) {
      expect(flag).toMatch(/^--[a-z]+(-[a-z]+)*$/);
      expect([back(flag), back(variable)]).toEqual([withoutUnit(key), withoutUnit(key)]);
    }
    expect(new Set(all.map(({ variable }) => variable)).size).toBe(all.length);
  });

  test("has a unique flag and variable for any key", () => {
    const key = fc
      .array(fc.stringMatching(/^[a-z]{1,6}$/), { minLength: 1, maxLength: 4 })
      .map(([first = "", ...rest]) =>
        [first, ...rest.map((word) => word.charAt(0).toUpperCase() + word.slice(1))].join(""),
      );
    fc.assert(
      fc.property(key, key, (one, other) => {
        expect(flagOf(one) === flagOf(other)).toBe(one === other);
        expect(variableOf(one)).toBe(
          `PIPE_SCALING_${flagOf(one).slice(2).replaceAll("-", "_").toUpperCase()}`,
        );
      }),
    );
  });
});
