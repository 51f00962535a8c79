import * as z from "zod";
import { GROUP, KIND, PLURAL, VERSION } from "./names.ts";
import { pipeScalingSchema } from "./pipe-scaling.ts";

/** Generates the CustomResourceDefinition of PipeScaling from its zod schema. */
export function crdManifest(): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${PLURAL}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: "Namespaced",
      names: {
        kind: KIND,
        listKind: `${KIND}List`,
        plural: PLURAL,
        singular: KIND.toLowerCase(),
        shortNames: ["psc"],
        categories: ["pipes"],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [
            column("Desired", ".status.desired.summary"),
            column("Effective", ".status.effective.summary"),
            column("Pipes", ".status.pipes.summary"),
            column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
            column("Age", ".metadata.creationTimestamp", { type: "date" }),
            // Not of the type `date`, which shows the age, and so only times in the past.
            column("Boost Until", ".status.boost.until", { priority: 1 }),
            column("Units", ".status.computeUnits", { type: "number", priority: 1 }),
            column("In Place", ".status.pipes.inPlace", { type: "integer", priority: 1 }),
            column("Tier", ".status.tier", { priority: 1 }),
            column("Message", '.status.conditions[?(@.type=="Ready")].message', { priority: 1 }),
          ],
          schema: {
            openAPIV3Schema: structural(z.toJSONSchema(pipeScalingSchema, { target: "openapi-3.0" })),
          },
        },
      ],
    },
  };
}

function column(name: string, jsonPath: string, options: { type?: string; priority?: number } = {}) {
  return { name, jsonPath, type: "string", ...options };
}

/** Removes the keywords that zod adds and that a structural schema does not allow or need. */
function structural(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(structural);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => {
        if (key === "propertyNames") return false;
        if (key === "additionalProperties") return value !== false;
        return !(typeof value === "number" && Math.abs(value) === Number.MAX_SAFE_INTEGER);
      })
      .map(([key, value]) => [key, structural(value)]),
  );
}
