import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { parseDocument, stringify } from "yaml";
import { CHART } from "../chart/path.ts";
import type { ChangelogSection } from "./changelog.ts";

export interface Release {
  readonly version: string;
  /** URL of the source repository. */
  readonly source: string;
  /** Registry and repository of the image. */
  readonly image: string;
  /** Digest of the image: `sha256:…`. */
  readonly digest: string;
}

/**
 * Writes the chart as it is released to `out`: it installs the image with this digest without any values, and has the
 * metadata for Artifact Hub that only a release knows.
 */
export function writeChart(release: Release, changes: ChangelogSection, out: string): string {
  const folder = join(out, basename(CHART));
  cpSync(CHART, folder, { recursive: true });
  const { version, source, image, digest } = release;
  edit(join(folder, "values.yaml"), {
    "image.repository": image,
    "image.digest": digest,
  });
  edit(join(folder, "Chart.yaml"), {
    version,
    appVersion: version,
    home: source,
    sources: [source],
    "maintainers.0.url": source,
  });
  const readme = join(folder, "README.md");
  // Outside of the repository, relative links lead nowhere.
  const links = readFileSync(readme, "utf8").replaceAll("](../../../", `](${source}/blob/v${version}/`);
  writeFileSync(readme, links);
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
