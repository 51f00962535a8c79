import { readFileSync } from "node:fs";
import * as z from "zod";
import { CHART } from "../../deploy/chart/path.ts";
import { rendered, valuesFile } from "./tools.ts";

const rules = z.object({
  spec: z.object({
    groups: z.tuple([
      z.object({
        rules: z.array(
          z.object({
            alert: z.string(),
            expr: z.string(),
            labels: z.record(z.string(), z.string()),
            annotations: z.record(z.string(), z.string()),
          }),
        ),
      }),
    ]),
  }),
});

const dashboard = z.object({
  templating: z.object({ list: z.array(z.object({ name: z.string(), query: z.string() })) }),
  panels: z.array(
    z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).default([]) }),
  ),
});

export type Alert = z.output<typeof rules>["spec"]["groups"][0]["rules"][number];

/** Returns the alerts of a release named "release" in pipe-scaling-system. */
export async function alerts(...args: readonly string[]): Promise<readonly Alert[]> {
  const objects = await rendered("--values", valuesFile("everything"), ...args);
  const rule = objects.find(({ kind }) => kind === "PrometheusRule");
  return rule ? rules.parse(rule).spec.groups[0].rules : [];
}

/** Returns the queries of the panels and variables of the dashboard, with their titles. */
export function dashboardQueries(): readonly { readonly title: string; readonly expr: string }[] {
  const { panels, templating } = dashboard.parse(
    JSON.parse(readFileSync(`${CHART}/files/dashboard.json`, "utf8")),
  );
  const ofVariables = templating.list.flatMap(({ name, query }) => {
    const [, expr] = /^label_values\((.+), \w+\)$/.exec(query) ?? [];
    return expr === undefined ? [] : [{ title: `$${name}`, expr }];
  });
  return [
    ...ofVariables,
    ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr }))),
  ];
}
