import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { parse, stringify } from "yaml";
import * as z from "zod";
import { CHART } from "../../deploy/chart/path.ts";

/** A packaged chart. */
export interface Package {
  readonly path: string;
  readonly version: string;
}

const FILES = { chart: "Chart.yaml", definition: join("files", "crd.yaml") };

const chart = z.looseObject({ version: z.string(), appVersion: z.string() });
const definition = z.looseObject({
  spec: z.looseObject({
    versions: z.tuple([
      z.looseObject({
        additionalPrinterColumns: z.array(z.looseObject({ name: z.string() })),
        schema: z.looseObject({
          openAPIV3Schema: z.looseObject({
            properties: z.looseObject({
              status: z.looseObject({ properties: z.record(z.string(), z.unknown()) }),
            }),
          }),
        }),
      }),
    ]),
  }),
});

/** Packages the current chart. */
export function packagePresent(dir: string): Promise<Package> {
  return packaged(CHART, dir);
}

/**
 * Packages a chart with an older version of the chart and the image, and a CRD without the tier of a service.
 */
export function packagePrevious(dir: string): Promise<Package> {
  const copy = join(dir, "previous");
  cpSync(CHART, copy, { recursive: true });
  rewrite(join(copy, FILES.chart), chart, (it) => {
    it.version = "0.0.9";
    it.appVersion = "0.0.9";
  });
  rewrite(join(copy, FILES.definition), definition, ({ spec: { versions } }) => {
    const [version] = versions;
    version.additionalPrinterColumns = version.additionalPrinterColumns.filter(({ name }) => name !== "Tier");
    delete version.schema.openAPIV3Schema.properties.status.properties["tier"];
  });
  return packaged(copy, dir);
}

function rewrite<T>(path: string, shape: z.ZodType<T>, change: (it: T) => void): void {
  const it = shape.parse(parse(readFileSync(path, "utf8")));
  change(it);
  writeFileSync(path, stringify(it));
}

async function packaged(folder: string, dir: string): Promise<Package> {
  const { version } = chart.parse(parse(readFileSync(join(folder, FILES.chart), "utf8")));
  await helm(["package", folder, "--destination", dir]);
  return { path: join(dir, `pipe-scaling-operator-${version}.tgz`), version };
}
