import { randomUUID } from "node:crypto";
import { API_VERSION, KIND } from "../../src/crd/names.ts";
import { EVENTS } from "../../src/kube/paths.ts";

interface Changes {
  readonly metadata?: object;
  readonly regarding?: object;
  readonly [field: string]: unknown;
}

/** An Event as the controller creates it in a namespace of pipes, with changes. */
export function anEvent(namespace: string, { metadata, regarding, ...changes }: Changes = {}) {
  const name = randomUUID();
  return {
    apiVersion: EVENTS.apiVersion,
    kind: "Event",
    metadata: { generateName: `${name}-`, namespace, ...metadata },
    eventTime: "2026-01-01T00:00:00.000000Z",
    reportingController: "pipes.clouddb.dev/pipe-scaling-controller",
    reportingInstance: "a",
    action: "Rescale",
    reason: "Scaled",
    type: "Normal",
    note: "All pipes run the size.",
    regarding: { apiVersion: API_VERSION, kind: KIND, namespace, name, uid: randomUUID(), ...regarding },
    ...changes,
  };
}
