import { helm } from "@pipe-scaling/local-cluster/helm";
import { parseAllDocuments } from "yaml";
import { CHART } from "../../deploy/chart/path.ts";

/** Sets of values that together switch each part of the chart on and off, in its folder ci. */
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
  };
}

export const RELEASE = ["release", CHART, "--namespace", "pipe-scaling-system"] as const;

/** The objects of a release. */
export async function rendered(...args: readonly string[]): Promise<readonly Manifest[]> {
  return parseAllDocuments(await helm(["template", ...RELEASE, ...args]))
    .map((document): Manifest | null => document.toJS())
    .filter((object) => object !== null);
}
