import { helm } from "@pipe-scaling/local-cluster/helm";

/** Fetches helm, with the progress on the terminal, before the first test needs it. Takes minutes if it is built. */
export async function setup(): Promise<void> {
  await helm(["version", "--short"]);
}
