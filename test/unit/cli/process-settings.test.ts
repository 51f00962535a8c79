import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../support/fixtures/kubeconfig.ts";
import { runProgram } from "../../support/terminal/program.ts";

/** Writes a file, and returns its path. */
function file(content: string): string {
  const path = join(temporaryFolder(), "file");
  writeFileSync(path, content);
  return path;
}

const { cert, key } = certificatePair("one");

describe("a process whose settings do not fit together", () => {
  it.each([
    [
      "api",
      () => ["--host", "0.0.0.0"],
      /^--host \(or PIPE_SCALING_HOST\) is "0\.0\.0\.0", and API keys would cross/,
    ],
    ["api", () => ["--tls-cert", file(cert)], /^--tls-cert .* and --tls-key .* must be set together/],
    ["api", () => ["--tls-key", file(key)], /^--tls-cert .* and --tls-key .* must be set together/],
    ["api", () => ["--tiers-file", "/nowhere"], /^--tiers-file .* cannot be used: ENOENT/],
    ["controller", () => ["--tiers-file", "/nowhere"], /^--tiers-file .* cannot be used: ENOENT/],
    [
      "controller",
      () => ["--dry-run", "--tiers-file", "/nowhere"],
      /^--tiers-file .* cannot be used: ENOENT/,
    ],
    [
      "api",
      () => ["--tls-cert", file("nonsense"), "--tls-key", file(key)],
      /^The TLS certificate and key are unusable: .*\. They must be PEM files that match\.$/m,
    ],
    [
      "api",
      () => ["--tls-cert", file(cert), "--tls-key", file(certificatePair("other").key)],
      /^The TLS certificate and key are unusable: .*\. They must be PEM files that match\.$/m,
    ],
  ])("exits with 2 and a sentence: %s with %s", async (name, flags, sentence) => {
    const { code, out, err } = await runProgram([name, ...flags()]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(sentence);
    expect(err).not.toMatch(/^ +at /m);
  });
});
