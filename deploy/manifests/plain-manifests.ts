import { fileURLToPath } from "node:url";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { CHART } from "../chart/path.ts";

const NAMESPACE = "pipe-scaling-system";
const VALUES = fileURLToPath(new URL("values.yaml", import.meta.url));
const HEAD = `# Generated from the chart with deploy/manifests/values.yaml. In the repository, \`npm run generate\` writes this file.
---
apiVersion: v1
kind: Namespace
metadata:
  name: ${NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
`;

/**
 * The chart's objects without the labels and annotations that only Helm uses.
 *
 * @param values other flags of Helm
 */
export async function plainManifests(...values: readonly string[]): Promise<string> {
  const where = ["--namespace", NAMESPACE, "--values", VALUES, "--skip-tests", ...values];
  const objects = await helm(["template", "pipe-scaling-operator", CHART, ...where]);
  return HEAD + objects.replace(/^ +(helm\.sh\/|app\.kubernetes\.io\/managed-by:).*\n/gm, "");
}
