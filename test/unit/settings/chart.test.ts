import { Ajv } from "ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { apiSettings } from "../../../src/settings/api.ts";
import { chartSchema } from "../../../src/settings/chart.ts";
import { controllerSettings } from "../../../src/settings/controller.ts";
import { declaredOptions, option, withoutUnit } from "../../../src/settings/option.ts";
import {
  durationMs,
  integer,
  listOf,
  namespaceName,
  oneOf,
  onOff,
  TEXT_RULE,
} from "../../../src/settings/values.ts";

const text = { placeholder: "text", description: "its value" };

const settings = {
  count: option(integer(1, 90), { ...text, default: "5" }),
  delayMs: option(durationMs("90s", "2h"), { ...text, default: "15m" }),
  names: option(listOf(namespaceName).optional(), { ...text, list: true }),
  level: option(oneOf("low", "high"), { ...text, default: "low", chart: { default: "high" } }),
  isLoud: option(onOff, { ...text, default: "true" }),
  pairs: option(z.string().optional(), { ...text, chart: { default: {}, description: "its map" } }),
  file: option(z.string().optional(), { ...text, chart: false }),
};

const chart = chartSchema(settings);

function accepts(key: string, value: unknown): boolean {
  return chart[key]?.safeParse(value).success ?? false;
}

describe("the chart values that are derived from settings", () => {
  it("have the names of the settings without units, and exclude the settings that the chart controls", () => {
    expect(Object.keys(chart)).toEqual(["count", "delay", "names", "level", "isLoud", "pairs"]);
  });

  it("have the defaults of the settings as YAML types, or the defaults of the chart", () => {
    expect(z.object(chart).parse({})).toEqual({
      count: 5,
      delay: "15m",
      names: [],
      level: "high",
      isLoud: true,
      pairs: {},
    });
  });

  it("have a description with the bounds", () => {
    expect(chart["count"]?.description).toBe("Its value; 1 to 90.");
    expect(chart["delay"]?.description).toBe("Its value; 90s to 2h.");
    expect(chart["level"]?.description).toBe("Its value.");
  });

  it("have the description of the chart if their notation differs there", () => {
    expect(chart["pairs"]?.description).toBe("Its map.");
  });

  it("reject an unknown choice and a wrong type", () => {
    expect(accepts("names", ["a-1"])).toBe(true);
    expect(accepts("names", "a-1")).toBe(false);
    expect(accepts("level", "medium")).toBe(false);
    expect(accepts("isLoud", "true")).toBe(false);
  });

  it("accept exactly the numbers that the process accepts", () => {
    fc.assert(
      fc.property(fc.integer({ min: -10, max: 200 }), (value) => {
        expect(accepts("count", value)).toBe(integer(1, 90).safeParse(String(value)).success);
      }),
    );
  });

  it("have the rule of a text for the templates, with the sentence of the process", () => {
    const schema = z.toJSONSchema(z.object(chart), { io: "input" });
    const { error } = durationMs("90s", "2h").safeParse("1s");
    const sentence = error?.issues[0]?.message;
    expect(sentence).toBe("it must be a duration from 90s to 2h, in ms, s, m or h");
    expect(schema.properties).toMatchObject({
      delay: { type: "string", [TEXT_RULE]: { sentence, least: "90s", most: "2h" } },
      names: {
        items: { type: "string", [TEXT_RULE]: { sentence: expect.stringMatching(/namespace name/) } },
      },
    });
  });

  it.each([
    ["scaling", "pipesCdcScaling"],
    ["scaling", "pipesScaling"],
    ["keys", "services"],
    ["..", "keys"],
    ["a/b", "keys"],
  ])("accept the path alias %s=%s only if the process accepts it", (alias, segment) => {
    const schema = z.toJSONSchema(z.object(chartSchema(apiSettings)), { target: "draft-7", io: "input" });
    const isValid = new Ajv({ strict: false }).compile(schema);
    const { success } = apiSettings.pathAliases.safeParse(`${alias}=${segment}`);
    expect(isValid({ pathAliases: { [alias]: segment } })).toBe(success);
  });

  it.each([
    ["api", apiSettings],
    ["controller", controllerSettings],
  ])("accept the defaults of the settings of the %s process", (_, processSettings) => {
    const values = chartSchema(processSettings);
    for (const [key, rule] of Object.entries(values)) {
      const standard = rule.parse(undefined);
      expect(rule.safeParse(standard).success, key).toBe(true);
    }
    const keys = declaredOptions(processSettings).map(({ key }) => withoutUnit(key));
    expect(keys).toEqual(expect.arrayContaining(Object.keys(values)));
  });
});
