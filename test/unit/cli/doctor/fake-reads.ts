import { Cluster } from "../../../../src/cli/doctor/cluster.ts";
import type { Place } from "../../../../src/cli/options.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { systemClock } from "../../../../src/runtime/clock.ts";

/** A cluster that returns these responses by path, and 404 for all other paths. */
export function clusterWith(
  responses: Readonly<Record<string, object>>,
  place: Partial<Place> = {},
): Cluster {
  return new Cluster({
    client: {
      server: "https://cluster.example",
      async json({ path }) {
        const response = responses[path];
        if (!response) throw new KubeApiError(`GET ${path}`, 404, "");
        return JSON.parse(JSON.stringify(response));
      },
    },
    signal: new AbortController().signal,
    clock: systemClock,
    place: { program: "pipe-scaling", namespace: "records", ...place },
  });
}

export function versionOf(minor: string) {
  return { major: "1", minor, gitVersion: `v1.${minor}.0` };
}
