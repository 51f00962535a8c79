import { succeed } from "./once.ts";

export const GO_REMEDY = "Install Go 1.21 or later, with a module proxy in reach (GOPROXY).";

/** Builds the tools of the go.mod in `folder` into `out`, independently of the user's settings. */
export async function installTools(folder: string, out: string): Promise<void> {
  const env = { GOBIN: out, GOFLAGS: "-mod=readonly", GOWORK: "off", CGO_ENABLED: "0" };
  await succeed("go", ["install", "-trimpath", "-ldflags", "-s -w", "tool"], folder, env);
}
