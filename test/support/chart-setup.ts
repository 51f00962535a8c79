import { helm } from "@pipe-scaling/local-cluster/helm";

/** Fetches helm, with progress on the terminal, before the first test needs it. Building it takes minutes. */
export async function setup(): Promise<void> {
  await helm(["version", "--short"]);
}
