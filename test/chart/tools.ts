import { helm } from "@pipe-scaling/local-cluster/helm";
import { parseAllDocuments } from "yaml";
import { CHART } from "../../deploy/chart/path.ts";

/** Value files in the folder ci of the chart, which together enable and disable each part of it. */
export const VALUE_SETS = ["minimal", "everything", "all-namespaces", "bare"] as const;

export function valuesFile(set: (typeof VALUE_SETS)[number]): string {
  return `${CHART}/ci/${set}-values.yaml`;
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

export const RELEASE = ["release", CHART, "--namespace", "pipe-scaling-system"] as const;

/** Returns the rendered objects of a release. */
export async function rendered(...args: readonly string[]): Promise<readonly Manifest[]> {
  return parseManifests(await helm(["template", ...RELEASE, ...args]));
}

/**
 * @param text YAML documents, as Helm prints them
 * @throws if a document is no valid YAML, for example because of a key that occurs twice, which Flux rejects, too
 */
export function parseManifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text)
    .map((document): Manifest | null => {
      const [error] = document.errors;
      if (error) throw error;
      return document.toJS();
    })
    .filter((object) => object !== null);
}
