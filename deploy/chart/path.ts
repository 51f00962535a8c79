import { fileURLToPath } from "node:url";

/** The folder of the chart. */
export const CHART = fileURLToPath(new URL("pipe-scaling-operator", import.meta.url));
