import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { BUILT_IN_TIERS } from "../../../src/domain/tier.ts";
import { apiSettings, toApiSettings } from "../../../src/settings/api.ts";
import { controllerSettings, toControllerSettings } from "../../../src/settings/controller.ts";
import { readOptions } from "../../../src/settings/option.ts";
import { POLICY } from "../../support/fixtures/snapshot.ts";

type Flags = Record<string, string>;

const api = (flags: Flags = {}, env: Flags = {}) => toApiSettings(readOptions(apiSettings, flags, env));
const controller = (flags: Flags = {}, env: Flags = {}) =>
  toControllerSettings(readOptions(controllerSettings, flags, env));

function file(content: string): string {
  const dir = mkdtempSync(join(tmpdir(), "pipe-scaling-config-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "file");
  writeFileSync(path, content);
  return path;
}

describe("without flags or variables", () => {
  test("the API listens on loopback and watches all namespaces", () => {
    expect(api()).toEqual({
      kubeconfig: undefined,
      namespace: "pipe-scaling-records",
      pipeNamespaces: [],
      tiers: BUILT_IN_TIERS,
      maximumCores: 24,
      host: "127.0.0.1",
      port: 8080,
      opsPort: 9090,
      metricsAuthentication: false,
      plainHttp: false,
      tlsCert: undefined,
      tlsKey: undefined,
      trustedProxies: [],
      pathAliases: new Map(),
      rateLimit: 10,
      rateWindowMs: 10_000,
      failedLogins: 10,
      disableDocsPage: false,
      keepAliveMs: 75_000,
      drainDelayMs: 0,
      maxBoostMs: 2_592_000_000,
      maxCacheAgeMs: 300_000,
      logLevel: "info",
    });
  });

  test("the controller has the default rollout policy and a random identity", () => {
    const { identity, ...settings } = controller();
    expect(settings).toEqual({
      kubeconfig: undefined,
      namespace: "pipe-scaling-records",
      pipeNamespaces: [],
      tiers: BUILT_IN_TIERS,
      host: "127.0.0.1",
      opsPort: 9091,
      metricsAuthentication: false,
      ...POLICY,
      resizeStrategy: "InPlaceOrRollout",
      dryRun: false,
      logLevel: "info",
    });
    expect(identity).toMatch(/-[0-9a-f]{8}$/);
    expect(controller().identity).not.toBe(identity);
    expect(controller({ identity: "x".repeat(128) }).identity).toHaveLength(128);
    expect(() => controller({ identity: "x".repeat(129) })).toThrow("it must have at most 128 characters");
  });
});

describe("settings", () => {
  test("are read from flags", () => {
    const flags = {
      port: "0",
      opsPort: "1",
      pipeNamespaces: "a, b-2, a",
      kubeconfig: "k",
      namespace: "records",
    };
    expect(api(flags)).toMatchObject({
      port: 0,
      opsPort: 1,
      pipeNamespaces: ["a", "b-2"],
      kubeconfig: "k",
      namespace: "records",
    });
  });

  test("include rate limits and trusted proxies", () => {
    const flags = { rateLimit: "0", rateWindow: "55s", failedLogins: "3", trustedProxies: "10.0.0.0/8, ::1" };
    expect(api(flags)).toMatchObject({
      rateLimit: 0,
      rateWindowMs: 55_000,
      failedLogins: 3,
      trustedProxies: ["10.0.0.0/8", "::1"],
    });
  });

  test("include the field managers that the controller waits for", () => {
    expect(controller({ toleratedResizers: "startup-boost, my tool" })).toMatchObject({
      toleratedResizers: ["startup-boost", "my tool"],
    });
  });

  test("are read from environment variables", () => {
    const env = {
      PIPE_SCALING_ROLLOUT_TIMEOUT: "90s",
      PIPE_SCALING_MAX_CONCURRENT_ROLLOUTS: "7",
      PIPE_SCALING_IDENTITY: "me",
    };
    expect(controller({}, env)).toMatchObject({
      rolloutTimeoutMs: 90_000,
      maxConcurrentRollouts: 7,
      identity: "me",
    });
  });

  test.each([
    ["1s", 1000],
    ["1500ms", 1500],
    ["15m", 900_000],
    ["24h", 86_400_000],
  ])("accept the duration %s", (rolloutTimeout, rolloutTimeoutMs) => {
    expect(controller({ rolloutTimeout })).toMatchObject({ rolloutTimeoutMs });
  });

  test("read tiers from a file instead of the built-in tiers", () => {
    const tiersFile = file("tiny: {defaultCpuMillicores: 1000, maximumCpuMillicores: 2000}");
    expect([...api({ tiersFile }).tiers.keys()]).toEqual(["tiny"]);
  });

  test.each([1, 64, 128])("accept a largest size of %i cores if no tier has a larger default", (cores) => {
    const tiersFile = file("tiny: {defaultCpuMillicores: 1000, maximumCpuMillicores: 128000}");
    const flags = { tiersFile, maximumCores: String(cores) };
    expect(api(flags)).toMatchObject({ maximumCores: cores });
    expect(controller(flags)).toMatchObject({ maximumCores: cores });
  });
});

describe("an invalid setting", () => {
  const wrong: readonly (readonly [Flags, string])[] = [
    [
      { port: "65536" },
      '--port (or PIPE_SCALING_PORT) is "65536", but it must be a whole number from 0 to 65535.',
    ],
    [{ port: "-1" }, "from 0 to 65535"],
    [{ port: "80.5" }, "from 0 to 65535"],
    [{ port: "0x50" }, "from 0 to 65535"],
    [{ opsPort: "http" }, "--ops-port (or PIPE_SCALING_OPS_PORT)"],
    [{ port: "tcp://10.0.0.1:8080" }, "set enableServiceLinks to false"],
    [
      { namespace: "Records" },
      '--namespace (or PIPE_SCALING_NAMESPACE) is "Records", but it must be a namespace name',
    ],
    [{ namespace: "a".repeat(64) }, "at most 63 lowercase letters"],
    [{ pipeNamespaces: "a,,b" }, '--pipe-namespaces (or PIPE_SCALING_PIPE_NAMESPACES) is "a,,b"'],
    [{ rateLimit: "10/s" }, "it must be a whole number from 0 to 10000"],
    [{ rateWindow: "1m" }, "it must be a duration from 1s to 55s"],
    [{ failedLogins: "off" }, "--failed-logins (or PIPE_SCALING_FAILED_LOGINS)"],
    [
      { trustedProxies: "10.0.0.1,10.0.0.0/33" },
      "each value must be an IP address or a CIDR, such as 10.0.0.0/8 or 2001:db8::1.",
    ],
    [{ trustedProxies: "fe80::1%eth0" }, "--trusted-proxies (or PIPE_SCALING_TRUSTED_PROXIES)"],
    [{ trustedProxies: "010.0.0.1" }, "--trusted-proxies (or PIPE_SCALING_TRUSTED_PROXIES)"],
    [{ logLevel: "loud" }, "but it must be trace, debug, info, warn, error, fatal or silent."],
    [{ plainHttp: "1" }, "but it must be true or false."],
    [
      { tlsCert: "/no/such/file" },
      '--tls-cert (or PIPE_SCALING_TLS_CERT) is "/no/such/file", but it must be a readable file.',
    ],
    [{ kubeconfig: " " }, "it must not be empty"],
    [
      { host: "0.0.0.0:8080" },
      '--host (or PIPE_SCALING_HOST) is "0.0.0.0:8080", but it must be an IP address or a host name, without a port.',
    ],
    [{ host: "300.1.1.1" }, "it must be an IP address or a host name"],
    [{ host: "[::]" }, "it must be an IP address or a host name"],
    [{ host: "a b" }, "it must be an IP address or a host name"],
    [{ maximumCores: "129" }, "it must be a whole number from 1 to 128"],
    [
      { maximumCores: "1" },
      "--maximum-cores (or PIPE_SCALING_MAXIMUM_CORES) is 1, but the default size of the tier scale is 2 cpu / 8 Gi: set at least 2, or lower that default.",
    ],
    [{ tiersFile: "/no/such/file" }, "--tiers-file (or PIPE_SCALING_TIERS_FILE) cannot be used: ENOENT"],
  ];
  test.each(wrong)("is rejected by the API with the allowed values: %j", (flags, sentence) => {
    expect(() => api(flags)).toThrow(sentence);
  });

  test.each([
    [{ rolloutTimeout: "15" }, "from 1s to 24h, in ms, s, m or h"],
    [{ rolloutTimeout: "0s" }, "from 1s to 24h"],
    [{ rolloutTimeout: "25h" }, "from 1s to 24h"],
    [{ maxConcurrentRollouts: "0" }, "a whole number from 1 to 10000"],
    [{ toleratedResizers: "a,,b" }, "it must be the name of a field manager: at most 128 characters"],
    [{ toleratedResizers: "a".repeat(129) }, "it must be the name of a field manager"],
    [{ maximumCores: "1" }, "the default size of the tier scale is 2 cpu / 8 Gi"],
    [{ identity: "" }, "--identity (or PIPE_SCALING_IDENTITY)"],
  ])("is rejected by the controller with the allowed values: %j", (flags: Flags, sentence) => {
    expect(() => controller(flags)).toThrow(sentence);
  });

  test("is rejected if it is a malformed tiers file", () => {
    expect(() => api({ tiersFile: file("basic: {defaultCpuMillicores: 1500}") })).toThrow(
      /--tiers-file .* cannot be used: The tiers file .* is invalid: basic/,
    );
  });
});

describe("plain HTTP", () => {
  test.each(["127.0.0.1", "127.8.9.1", "::1", "localhost"])("is allowed on %s", (host) => {
    expect(api({ host }).host).toBe(host);
  });

  test.each(["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "example.org"])("is rejected on %s", (host) => {
    expect(() => api({ host })).toThrow(
      /--host \(or PIPE_SCALING_HOST\) is .*, and API keys would cross the network unencrypted: .*--plain-http/,
    );
  });

  test("is allowed on any address if --plain-http is set, and not needed if the process serves TLS", () => {
    expect(api({ host: "0.0.0.0", plainHttp: "true" }).plainHttp).toBe(true);
    const [tlsCert, tlsKey] = [file("cert"), file("key")];
    expect(api({ host: "0.0.0.0", tlsCert, tlsKey })).toMatchObject({ tlsCert, tlsKey });
  });

  test("is rejected on the port of the metrics, unless both may be any free port", () => {
    expect(() => api({ port: "9090" })).toThrow("are both 9090: set one of them to another port.");
    expect(api({ port: "0", opsPort: "0" })).toMatchObject({ port: 0, opsPort: 0 });
  });

  test.each(["tlsCert", "tlsKey"])("is rejected if only %s is set", (name) => {
    expect(() => api({ [name]: file("pem") })).toThrow("must be set together: set both or neither.");
  });
});
