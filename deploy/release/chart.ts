import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { parseDocument, stringify } from "yaml";
import { generated } from "../chart/generated.ts";
import { CHART } from "../chart/path.ts";
import type { ChangelogSection } from "./changelog.ts";
import type { Release } from "./release.ts";

/**
 * Writes the chart as it is released to `out`: it installs the image with this digest without any values, and has the
 * metadata for Artifact Hub that only a release knows.
 */
export function writeChart(release: Release, changes: ChangelogSection, out: string): string {
  const folder = join(out, basename(CHART));
  cpSync(CHART, folder, { recursive: true });
  const { version, source, image, digest } = release;
  for (const [path, text] of generated(release)) writeFileSync(join(out, path), text);
  edit(join(folder, "Chart.yaml"), {
    version,
    appVersion: version,
    home: source,
    sources: [source],
    "maintainers.0.url": source,
  });
  annotate(join(folder, "Chart.yaml"), {
    changes: stringify(
      changes.groups.flatMap(({ kind, entries }) =>
        entries.map((description) => ({ kind: kind.toLowerCase(), description })),
      ),
    ),
    containsSecurityUpdates: String(changes.groups.some(({ kind }) => kind === "Security")),
    images: stringify([{ name: "pipe-scaling-operator", image: `${image}:${version}@${digest}` }]),
    links: stringify([{ name: "source", url: source }]),
    prerelease: String(version.includes("-")),
  });
  return folder;
}

export async function packageChart(folder: string, out: string): Promise<void> {
  await helm(["package", folder, "--destination", out]);
}

/** Sets keys of a YAML file, and keeps its comments. */
function edit(path: string, values: Readonly<Record<string, unknown>>): void {
  const document = parseDocument(readFileSync(path, "utf8"));
  for (const [key, value] of Object.entries(values)) document.setIn(key.split("."), value);
  writeFileSync(path, document.toString({ lineWidth: 0 }));
}

function annotate(path: string, annotations: Readonly<Record<string, string>>): void {
  const document = parseDocument(readFileSync(path, "utf8"));
  for (const [key, value] of Object.entries(annotations)) {
    document.setIn(["annotations", `artifacthub.io/${key}`], value);
  }
  writeFileSync(path, document.toString({ lineWidth: 0 }));
}
