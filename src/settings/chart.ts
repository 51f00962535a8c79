import { parse } from "yaml";
import type * as z from "zod";
import { declaredOptions, type Options, withoutUnit } from "./option.ts";
import { inChart, rangeOf } from "./values.ts";

/** Turns the settings of a process into chart values with rules, defaults and descriptions. */
export function chartSchema(settings: Options): Record<string, z.ZodType> {
  const entries = declaredOptions(settings).flatMap(
    ({ key, schema, description, list, chart, ...declared }) => {
      if (chart === false) return [];
      const rule = inChart(schema);
      // Parsing the text of a flag as YAML gives the typed value: 50, true, 15m.
      const standard =
        chart?.default ?? (declared.default === undefined ? undefined : parse(declared.default));
      const range = rangeOf(schema);
      const text = chart?.description ?? description;
      const sentence = `${text.charAt(0).toUpperCase()}${text.slice(1)}${range ? `; ${range}` : ""}.`;
      return [[withoutUnit(key), rule.default(standard ?? (list ? [] : "")).describe(sentence)]];
    },
  );
  return Object.fromEntries(entries);
}
