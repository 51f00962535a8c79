import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { tryHelm } from "@pipe-scaling/local-cluster/helm";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { AddressSet } from "../../src/domain/address-set.ts";
import { apiSettings } from "../../src/settings/api.ts";
import { controllerSettings } from "../../src/settings/controller.ts";
import { declaredOptions, withoutUnit } from "../../src/settings/option.ts";
import { rangeOf } from "../../src/settings/values.ts";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { RELEASE, valuesFile } from "./tools.ts";

/** Renders the chart, and returns the errors of Helm; none if it succeeds. */
async function errors(...args: readonly string[]): Promise<string> {
  const { stderr } = await tryHelm(["template", ...RELEASE, "--values", valuesFile("minimal"), ...args]);
  return stderr;
}

const DURATIONS = [
  ...declaredOptions(apiSettings).map((each) => ({ ...each, section: "api.config" })),
  ...declaredOptions(controllerSettings).map((each) => ({ ...each, section: "controller.config" })),
]
  .filter(({ key, chart }) => key.endsWith("Ms") && chart !== false)
  .map(({ section, key, schema }) => {
    const [least = "", most = ""] = rangeOf(schema)?.split(" to ") ?? [];
    const sentence = schema.safeParse("1y").error?.issues[0]?.message;
    return { path: `${section}.${withoutUnit(key)}`, least, most, sentence };
  });

describe("a duration among the chart values", () => {
  it("may be the least and the greatest that the process accepts, in any unit", async () => {
    expect(DURATIONS.length).toBeGreaterThan(4);
    for (const bound of ["least", "most"] as const) {
      const sets = DURATIONS.flatMap((each) => ["--set", `${each.path}=${each[bound]}`]);
      expect(await errors(...sets)).toBe("");
    }
    const same = "api.config.keepAlive=7200000ms,api.config.rateWindow=055s";
    expect(await errors("--set", same)).toBe("");
  });

  it("is rejected outside of its range with the value and the sentence of the process", async () => {
    const sets = DURATIONS.flatMap(({ path }) => ["--set", `${path}=99999h`]);
    const found = await errors(...sets);
    for (const { path, sentence } of DURATIONS)
      expect(found).toContain(`${path} is "99999h", but ${sentence}.\n`);
  });

  it.each([
    ["api.config.keepAlive=7200001ms", "from 5s to 2h"],
    ["api.config.keepAlive=4s", "from 5s to 2h"],
    ["api.config.rateWindow=056s", "from 1s to 55s"],
    ["api.config.maxCacheAge=1m", "from 2m to 24h"],
    ["api.config.maxCacheAge=5 m", "from 2m to 24h"],
    ["controller.config.rolloutTimeout=1d", "from 1s to 24h"],
    ["api.tls.certificate.duration=59m", "from 1h to 87600h"],
    ["api.tls.certificate.renewBefore=4m", "from 5m to 87600h"],
    ["monitoring.serviceMonitor.interval=0s", "from 1s to 24h"],
  ])("is rejected with its range: %s", async (set, range) => {
    const [path = "", value = ""] = set.split("=");
    const found = await errors("--set", set);
    expect(found).toContain(`${path} is "${value}", but it must be a duration ${range}, in ms, s, m or h.`);
    expect(found).not.toMatch(/pattern|\^/);
  });
});

const ADDRESSES = [
  ...["0.0.0.0", "10.1.2.3", "172.16.0.0", "192.0.2.128"].map((address) => ({ address, bits: 32 })),
  ...["::", "::1", "2001:db8::", "2001:DB8:0:1::a0", "fe80::1:0:0:8000", "1:2:3:4:5:6:7:8"].map(
    (address) => ({
      address,
      bits: 128,
    }),
  ),
];

const list = z.array(z.string());

describe("a CIDR among the chart values", () => {
  it("is rejected exactly if the process rejects it, with the CIDR that the user probably means", async () => {
    const all = ADDRESSES.flatMap(({ address, bits }) => [
      address,
      ...Array.from({ length: bits + 1 }, (_, prefix) => `${address}/${prefix}`),
    ]);
    const file = join(temporaryFolder(), "values.json");
    writeFileSync(file, JSON.stringify({ api: { config: { trustedProxies: all } } }));
    const found = await errors("--values", file);
    const pattern =
      /^api\.config\.trustedProxies contains "(.*)", but it must begin with .*: set it to (.*)\.$/gm;
    const rejected = [...found.matchAll(pattern)].map(([, given = "", meant = ""]) => ({ given, meant }));
    const isRejected = (source: string) => new AddressSet().add(source) !== undefined;
    expect(rejected.map(({ given }) => given)).toEqual(list.parse(all.filter(isRejected)));
    expect(rejected.length).toBeGreaterThan(300);
    for (const { given, meant } of rejected) {
      const range = new AddressSet();
      expect([meant, range.add(meant)]).toEqual([meant, undefined]);
      expect(range.has(given.split("/")[0] ?? "")).toBe(true);
    }
  });

  it.each([
    ["api.config.trustedProxies={10.1.2.3/8}", "10.0.0.0/8"],
    ["api.config.trustedProxies={2001:db8::1/32}", "2001:db8::/32"],
    ["networkPolicy.apiServer.cidrs={192.0.2.10/24}", "192.0.2.0/24"],
    ["api.service.type=LoadBalancer,api.service.loadBalancerSourceRanges={fe80::1/10}", "fe80::/10"],
  ])("is rejected with bits after the prefix: %s", async (set, meant) => {
    expect(await errors("--set", set)).toContain(
      `but it must begin with the first address of its range: set it to ${meant}.\n`,
    );
  });
});

describe("a text among the chart values is rejected with a sentence instead of a pattern", () => {
  it.each([
    [
      "api.config.trustedProxies={10.0.0.0/33}",
      /trustedProxies contains "10\.0\.0\.0\/33", but it must be an IP/,
    ],
    [
      "api.service.loadBalancerSourceRanges={10.0.0.1}",
      /Ranges contains "10\.0\.0\.1", but it must be a CIDR/,
    ],
    ["networkPolicy.apiServer.cidrs={api}", /cidrs contains "api", but it must be a CIDR/],
    [
      "listenAddress=0.0.0.0:8080",
      /listenAddress is "0\.0\.0\.0:8080", but it must be an IP address without a port/,
    ],
    ["listenAddress=localhost", /listenAddress is "localhost", but it must be an IP address/],
    [
      "pipes.namespaces={Acme_Pipes}",
      /pipes\.namespaces contains "Acme_Pipes", but it must be a namespace name/,
    ],
    ["records.namespace=", /records\.namespace is "", but it must be a namespace name/],
    ["image.tag=p:1.2", /image\.tag is "p:1\.2", but it must be a tag, such as 1\.2\.3; a digest belongs in/],
    [
      "image.digest=sha256:12",
      /image\.digest is "sha256:12", but it must be sha256: and 64 hexadecimal digits/,
    ],
    ["tracing.otlpEndpoint=collector:4318", /otlpEndpoint is "collector:4318", but it must be the URL of a/],
    ["tracing.otlpEndpoint=http://:4318", /otlpEndpoint is "http:\/\/:4318", but it must be the URL of a/],
    ["api.resources.limits.memory=1GB", /api\.resources\.limits\.memory is "1GB", but it must be a quantity/],
    ["monitoring.podMonitor.scrapeTimeout=10", /scrapeTimeout'.*got number, want string/],
    [
      "monitoring.podMonitor.scrapeTimeout=1 s",
      /scrapeTimeout is "1 s", but it must be empty, or a duration/,
    ],
    [
      "controller.podDisruptionBudget.minAvailable=half",
      /minAvailable is "half", but it must be a number of pods/,
    ],
  ])("%s", async (set, reason) => {
    const found = await errors("--set", set);
    expect(found).toMatch(reason);
    expect(found).not.toMatch(/pattern/);
  });
});

describe("image.repository is rejected with the values that the user probably means", () => {
  const DIGEST = `sha256:${"0".repeat(64)}`;

  it.each([
    ["https://r.example.com/p", "image.repository to r.example.com/p."],
    ["docker://r.example.com/p", "image.repository to r.example.com/p."],
    ["oci://r.example.com:5000/p", "image.repository to r.example.com:5000/p."],
    ["r.example.com/p:1.2.3", "image.repository to r.example.com/p, image.tag to 1.2.3."],
    ["p:1.2.3", "image.repository to p, image.tag to 1.2.3."],
    [`r.example.com/p@${DIGEST}`, `image.repository to r.example.com/p, image.digest to ${DIGEST}.`],
    [
      `https://r.example.com:5000/p:1.2.3@${DIGEST}`,
      `image.repository to r.example.com:5000/p, image.tag to 1.2.3, image.digest to ${DIGEST}.`,
    ],
  ])("%s", async (repository, meant) => {
    expect(await errors("--set", `image.repository=${repository}`)).toContain(
      `image.repository is "${repository}", but it must have no scheme, tag or digest: set ${meant}\n`,
    );
  });

  it.each(["Platform/Operator", "r.example.com/p/", "r.example.com//p", "r.example.com/a b"])(
    "%s, which is no repository",
    async (repository) => {
      expect(await errors("--set", `image.repository=${repository}`)).toContain(
        `image.repository is "${repository}", but it must consist of lowercase letters and digits`,
      );
    },
  );

  it.each(["https://r.example.com", "r.example.com/"])("and image.registry too: %s", async (registry) => {
    expect(await errors("--set", `image.registry=${registry},image.repository=p`)).toContain(
      `image.registry is "${registry}", but it must have no scheme and no slash at the end: set it to r.example.com.`,
    );
  });

  it.each(["p", "localhost:5000/p", "r.example.com/a/b_c/d.e-f", "R.example.com/a__b"])(
    "but not %s",
    async (repository) => {
      expect(await errors("--set", `image.repository=${repository}`)).toBe("");
    },
  );
});
