import { createHash } from "node:crypto";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/cli/doctor/cluster.ts";
import type { Result } from "../../../../src/cli/doctor/result.ts";
import { checkTiers } from "../../../../src/cli/doctor/tiers.ts";
import { checkTls } from "../../../../src/cli/doctor/tls.ts";
import { clusterWith } from "./fake-reads.ts";

const DAY_MS = 86_400_000;
const TIERS = "basic:\n  defaultCpuMillicores: 1000\n  maximumCpuMillicores: 2000";

/** Both processes, with mounted tiers and a mounted certificate. */
function deployments(checksum: string | undefined, tls: string) {
  return ["api", "controller"].map((component) => {
    const labels = {
      "app.kubernetes.io/component": component,
      "app.kubernetes.io/part-of": "pipe-scaling-operator",
    };
    const env = [
      { name: "PIPE_SCALING_NAMESPACE", value: "records" },
      { name: "PIPE_SCALING_TIERS_FILE", value: "/etc/pipe-scaling/tiers.yaml" },
      ...(component === "api" ? [{ name: "PIPE_SCALING_TLS_CERT", value: "/etc/tls/tls.crt" }] : []),
    ];
    const volumeMounts = [
      { name: "of-tiers", mountPath: "/etc/pipe-scaling" },
      { name: "of-tls", mountPath: "/etc/tls" },
    ];
    const volumes = [
      { name: "of-tiers", configMap: { name: "tiers" } },
      { name: "of-tls", secret: { secretName: tls } },
    ];
    const metadata = { labels, annotations: { "checksum/tiers": checksum } };
    return {
      metadata: { name: component, namespace: "system", labels },
      spec: {
        template: { metadata, spec: { containers: [{ name: component, env, volumeMounts }], volumes } },
      },
    };
  });
}

interface Options {
  readonly tiers?: object;
  readonly checksum?: string;
  readonly secret?: object;
  /** Name of the Secret with the certificate. */
  readonly tls?: string;
}

async function results(check: (cluster: Cluster) => Promise<Result[]>, options: Options) {
  const all = await resultsOf(check, options);
  return all.map(({ severity, message }) => `${severity}: ${message}`);
}

async function resultsOf(check: (cluster: Cluster) => Promise<Result[]>, options: Options) {
  const { tiers, checksum, secret, tls = "own" } = options;
  const all = await check(
    clusterWith({
      "/apis/apps/v1/deployments": { metadata: {}, items: deployments(checksum, tls) },
      ...(tiers ? { "/api/v1/namespaces/system/configmaps/tiers": tiers } : {}),
      ...(secret ? { [`/api/v1/namespaces/system/secrets/${tls}`]: secret } : {}),
    }),
  );
  for (const { severity, remedy } of all) {
    if (severity !== "ok") expect(remedy).toMatch(/helm upgrade|kubectl create|kubectl describe/);
  }
  return all;
}

describe("the tiers check of doctor", () => {
  const checksum = createHash("sha256").update(TIERS).digest("hex");
  const ofText = (text: string) => ({ data: { "tiers.yaml": text } });

  it("accepts the tiers of the chart, which both processes share", async () => {
    const tiers = ofText(`${TIERS}\n`);
    expect(await results(checkTiers, { tiers, checksum })).toEqual(["ok: The tiers are valid: basic."]);
    expect(await results(checkTiers, { tiers })).toEqual(["ok: The tiers are valid: basic."]);
  });

  it.each([
    ["of which there is no ConfigMap", undefined, "error", "does not exist"],
    ["without the key", { data: {} }, "error", "has no key tiers.yaml"],
    ["that are not YAML", ofText("basic: ["), "error", "is not YAML without aliases"],
    ["that are invalid", ofText("basic: {}"), "error", "is invalid: basic.defaultCpuMillicores"],
    ["that were edited", ofText(TIERS.replace("2000", "3000")), "warning", "it was edited"],
  ])("reports tiers %s", async (_, tiers, severity, what) => {
    const [first, ...others] = await results(checkTiers, { checksum, ...(tiers ? { tiers } : {}) });
    expect(first).toContain(`${severity}: The ConfigMap system/tiers with the tiers `);
    expect(first).toContain(what);
    expect(others).toEqual([]);
  });
});

describe("the TLS check of doctor", () => {
  function secretOf(pair: Readonly<Record<string, string>>, metadata = {}) {
    const encoded = Object.entries(pair).map(([key, text]) => [
      `tls.${key}`,
      Buffer.from(text).toString("base64"),
    ]);
    return { metadata, data: Object.fromEntries(encoded) };
  }
  const pairFor = (ms: number, ageMs?: number) => {
    const { cert, key } = certificatePair("api", ms, ageMs);
    return { crt: cert, key };
  };
  const usable = pairFor(60 * DAY_MS);

  it("accepts a certificate that is valid for some time", async () => {
    expect(await results(checkTls, { secret: secretOf(usable) })).toEqual([
      "ok: The TLS certificate of the API is usable; it expires in 60 d.",
    ]);
  });

  it("accepts a short certificate until a fifth of its validity is left", async () => {
    const at = (leftMs: number) =>
      results(checkTls, { secret: secretOf(pairFor(leftMs, 10 * DAY_MS - leftMs)) });
    expect(await at(3 * DAY_MS)).toEqual([
      "ok: The TLS certificate of the API is usable; it expires in 3 d.",
    ]);
    expect(await at(1.5 * DAY_MS)).toEqual([
      expect.stringMatching(/^warning: .* expires in .*, and nothing has renewed it\.$/),
    ]);
  });

  it("lets Helm create the Secret of the chart, and the user every other", async () => {
    const remedies = async (tls: string) => (await resultsOf(checkTls, { tls })).map(({ remedy }) => remedy);
    expect(await remedies("api-tls")).toEqual([
      "helm upgrade, which creates a self-signed certificate. To use your own, store it in a Secret of another name, and set api.tls.secretName to that name.",
    ]);
    expect(await remedies("own")).toEqual([
      "`kubectl create secret tls own --namespace system --cert <file> --key <file>`; cert-manager creates it by itself.",
    ]);
  });

  it.each([
    [
      "lets cert-manager issue its Secret anew",
      { annotations: { "cert-manager.io/certificate-name": "front" } },
      "To find out why cert-manager has not replaced it: `kubectl describe certificates.cert-manager.io,certificaterequests.cert-manager.io,issuers.cert-manager.io,clusterissuers.cert-manager.io --namespace system`; to have it issued anew: kubectl delete secret api-tls --namespace system",
    ],
    [
      "lets Helm replace its Secret",
      { labels: { "app.kubernetes.io/managed-by": "Helm" } },
      expect.stringMatching(
        /: `kubectl delete secret api-tls --namespace system`, then helm upgrade, which /,
      ),
    ],
    [
      "lets the user replace another Secret",
      {},
      expect.stringContaining(", then `kubectl create secret tls api-tls --namespace system --cert <file> "),
    ],
  ])("%s, although it has the name of the chart's", async (_, metadata, remedy) => {
    const [result] = await resultsOf(checkTls, {
      tls: "api-tls",
      secret: secretOf(pairFor(-1000), metadata),
    });
    expect(result?.remedy).toEqual(remedy);
  });

  it.each<[string, object | undefined, string]>([
    ["that does not exist", undefined, "error: .* does not exist"],
    ["without a key", secretOf({ crt: usable.crt }), "error: .* has no tls.key"],
    ["without a certificate", secretOf({ key: usable.key }), "error: .* has no tls.crt"],
    [
      "whose key is of another certificate",
      secretOf({ ...usable, key: pairFor(1).key }),
      "error: .* is unusable",
    ],
    ["that is not PEM", secretOf({ crt: "a", key: "b" }), "error: .* is unusable"],
    [
      "that clients do not accept yet",
      secretOf(pairFor(60 * DAY_MS, -3 * DAY_MS)),
      "error: .* becomes valid in 3 d, so clients reject it",
    ],
    ["that has expired", secretOf(pairFor(-3 * DAY_MS)), "error: .* expired 3 d ago"],
    [
      "that expires in less than 14 days",
      secretOf(pairFor(10 * DAY_MS, 80 * DAY_MS)),
      "warning: .* expires in 10 d",
    ],
  ])("reports a Secret %s", async (_, secret, problem) => {
    expect(await results(checkTls, secret ? { secret } : {})).toEqual([expect.stringMatching(`^${problem}`)]);
  });
});
