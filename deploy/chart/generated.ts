import { readFileSync } from "node:fs";
import { stringify } from "yaml";
import * as z from "zod";
import { crdYaml } from "../../src/crd/yaml.ts";
import { chartValues } from "./values.ts";

const CHART = "pipe-scaling-operator";
const LINE_WIDTH = 110;
/** The part of the README between these markers is generated. */
const [TABLE_BEGIN, TABLE_END] = ["<!-- values: begin -->", "<!-- values: end -->"] as const;

export interface ValueSchema {
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, ValueSchema>>;
  readonly [keyword: string]: unknown;
}

/** Path (relative to this file) and content of each generated file of the chart. */
export function generated(): ReadonlyMap<string, string> {
  const schema = valuesSchema();
  return new Map([
    [`${CHART}/values.schema.json`, `${JSON.stringify(schema, undefined, 2)}\n`],
    [`${CHART}/values.yaml`, valuesYaml(schema)],
    [`${CHART}/README.md`, readme(schema)],
    [`${CHART}/files/crd.yaml`, crdYaml()],
  ]);
}

/** Uses draft 7, the only draft that Helm 3, Helm 4 and editors all support. */
export function valuesSchema(): ValueSchema {
  return JSON.parse(JSON.stringify(z.toJSONSchema(chartValues, { target: "draft-7", io: "input" })));
}

function valuesYaml(schema: ValueSchema): string {
  const head =
    "# Default values, generated from deploy/chart/values.ts by `npm run generate`. Do not edit.\n# Put only the values that you change into a values file of your own.\n";
  return `${head}\n${section(schema, "")}`;
}

function section({ properties = {} }: ValueSchema, indent: string): string {
  return Object.entries(properties)
    .filter(([, value]) => isGroup(value) || value.default !== undefined)
    .map(([key, value]) => {
      const comment = wrapped(value.description ?? "", LINE_WIDTH - indent.length - 2)
        .map((line) => `${indent}# ${line}\n`)
        .join("");
      if (isGroup(value)) return `${comment}${indent}${key}:\n${section(value, `${indent}  `)}`;
      const entry = stringify({ [key]: value.default }, { lineWidth: 0 });
      return comment + entry.replace(/^(?=.)/gm, indent);
    })
    .join(indent === "" ? "\n" : "");
}

/** A schema with a default is a single value, even if it has properties. */
function isGroup({ properties = {}, default: standard }: ValueSchema): boolean {
  return Object.keys(properties).length > 0 && standard === undefined;
}

function wrapped(text: string, width: number): string[] {
  return text.match(new RegExp(`.{1,${width}}(?: |$)`, "g"))?.map((line) => line.trimEnd()) ?? [];
}

function readme(schema: ValueSchema): string {
  const text = readFileSync(new URL(`${CHART}/README.md`, import.meta.url), "utf8");
  const [before, rest = ""] = text.split(TABLE_BEGIN);
  const [, after] = rest.split(TABLE_END);
  if (after === undefined) throw new Error(`the chart's README has no ${TABLE_BEGIN} … ${TABLE_END}`);
  const head = "| value | default | description |\n|---|---|---|\n";
  return `${before}${TABLE_BEGIN}\n\n${head}${rows(schema, "").join("")}\n${TABLE_END}${after}`;
}

function rows({ properties = {} }: ValueSchema, prefix: string): string[] {
  return Object.entries(properties).flatMap(([key, value]) => {
    const path = `${prefix}${key}`;
    if (isGroup(value)) return rows(value, `${path}.`);
    if (value.default === undefined) return [];
    return [`| \`${path}\` | \`${JSON.stringify(value.default)}\` | ${value.description} |\n`];
  });
}
