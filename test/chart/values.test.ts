import { readFileSync } from "node:fs";
import { helm, tryHelm } from "@pipe-scaling/local-cluster/helm";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { generated, type ValueSchema, valuesSchema } from "../../deploy/chart/generated.ts";
import { CHART } from "../../deploy/chart/path.ts";
import { NODE } from "../../deploy/image/node.ts";
import { plainManifests } from "../../deploy/manifests/plain-manifests.ts";
import { apiSettings } from "../../src/settings/api.ts";
import { controllerSettings } from "../../src/settings/controller.ts";
import { declaredOptions } from "../../src/settings/option.ts";
import { entrypoint } from "./image.ts";
import { RELEASE, rendered, VALUE_SETS, valuesFile } from "./tools.ts";

const MINIMAL = ["--values", valuesFile("minimal")] as const;

describe("what is generated of the chart", () => {
  it.each([...generated()])("%s is up to date", (path, text) => {
    expect(readFileSync(`${CHART}/../${path}`, "utf8")).toBe(text);
  });
});

describe("the plain manifests", () => {
  it("are what the chart makes", async () => {
    expect(readFileSync(new URL("../../deploy/manifests/install.yaml", import.meta.url), "utf8")).toBe(
      await plainManifests(),
    );
  });
});

describe("the schema of the values", () => {
  const fields = [...everyField(valuesSchema(), "values")];

  it("describes every field", () => {
    expect(
      fields.filter(([, { description = "" }]) => !/^[A-Z`].*\.$/s.test(description)).map(([path]) => path),
    ).toEqual([]);
  });

  it("refuses unknown keys wherever it knows the known ones", () => {
    const open = fields.filter(([, { properties, additionalProperties }]) => {
      return Object.keys(properties ?? {}).length > 0 && additionalProperties !== false;
    });
    expect(open.map(([path]) => path)).toEqual([]);
  });
});

describe.each(VALUE_SETS)("with the %s values", (set) => {
  it("helm lint finds nothing", async () => {
    expect(await helm(["lint", "--strict", CHART, "--values", valuesFile(set)])).toMatch(
      /0 chart\(s\) failed/,
    );
  });

  it("everything that is made has the release's labels", async () => {
    const objects = await rendered("--values", valuesFile(set));
    const strangers = objects.filter(({ metadata: { labels } }) => {
      return labels?.["app.kubernetes.io/instance"] !== "release" || !labels["helm.sh/chart"];
    });
    expect(strangers).toEqual([]);
  });
});

describe("values that are wrong are refused, with the field and the reason:", () => {
  it.each([
    ["a key with a typo", ["controler.replicas=2"], /additional properties 'controler' not allowed/],
    [
      "a key with a typo below",
      ["api.config.rateLimitt=2"],
      /'\/api\/config'.*additional properties 'rateLimitt' not allowed/,
    ],
    ["a wrong type", ["api.replicas=two"], /'\/api\/replicas'.*got string, want integer/],
    [
      "too many",
      ["api.config.rateLimit=10001"],
      /'\/api\/config\/rateLimit'.*maximum: got 10,001, want 10,000/,
    ],
    ["no duration", ["controller.config.rolloutTimeout=15"], /'\/controller\/config\/rolloutTimeout'/],
    ["no namespace", ["pipes.namespaces={Acme_Pipes}"], /'\/pipes\/namespaces\/0'/],
    ["a namespace twice", ["pipes.namespaces={a,a}"], /'\/pipes\/namespaces'.*items at 0 and 1 are equal/],
    [
      "a tier off the steps",
      ["tiers.gold.defaultCpuMillicores=1500,tiers.gold.maximumCpuMillicores=2000"],
      /'\/tiers\/gold\/defaultCpuMillicores'.*1,?500/,
    ],
    [
      "half a tier",
      ["tiers.gold.defaultCpuMillicores=1000"],
      /'\/tiers\/gold'.*missing property 'maximumCpuMillicores'/,
    ],
    [
      "a tier whose default is above its maximum",
      ["tiers.gold.defaultCpuMillicores=4000,tiers.gold.maximumCpuMillicores=2000"],
      /tiers\.gold: defaultCpuMillicores \(4000\) is greater than maximumCpuMillicores \(2000\)/,
    ],
    ["pipes nowhere", ["pipes.namespaces=null"], /pipes\.namespaces is empty: list the namespaces/],
    [
      "pipes both here and everywhere",
      ["pipes.allNamespaces=true"],
      /pipes\.namespaces and pipes\.allNamespaces are mutually exclusive/,
    ],
    [
      "records beside Helm's Secrets",
      ["records.namespace=pipe-scaling-system"],
      /records\.namespace is the namespace of the release \(pipe-scaling-system\)/,
    ],
    [
      "records beside pipes",
      ["records.namespace=acme-pipes"],
      /records\.namespace \(acme-pipes\) is one of pipes\.namespaces/,
    ],
    [
      "resizes in place without permission",
      ["controller.config.resizeStrategy=InPlaceOrRollout"],
      /controller\.config\.resizeStrategy is InPlaceOrRollout.*set rbac\.inPlaceResize to true/,
    ],
    [
      "TLS without a Secret or a Certificate",
      ["api.tls.secretName="],
      /api\.tls\.enabled requires a certificate/,
    ],
    [
      "a Certificate without an issuer",
      ["api.tls.certificate.enabled=true"],
      /api\.tls\.certificate\.issuerRef\.name is empty/,
    ],
    [
      "a Certificate that nothing uses",
      ["api.tls.enabled=false,api.tls.certificate.enabled=true,api.tls.certificate.issuerRef.name=x"],
      /so the certificate would be unused/,
    ],
    [
      "an autoscaler without requests",
      ["api.autoscaling.enabled=true,api.resources.requests.cpu=null"],
      /api\.autoscaling\.enabled requires api\.resources\.requests\.cpu/,
    ],
    [
      "an autoscaler with its ends crossed",
      ["api.autoscaling.enabled=true,api.autoscaling.minReplicas=9"],
      /minReplicas \(9\) is greater than maxReplicas \(6\)/,
    ],
    ["an Ingress without a host", ["api.ingress.enabled=true"], /api\.ingress\.host is empty/],
    ["a collector that is no URL", ["tracing.otlpEndpoint=collector:4318"], /'\/tracing\/otlpEndpoint'/],
    ["a collector without a host", ["tracing.otlpEndpoint=http://:4318"], /'\/tracing\/otlpEndpoint'/],
    [
      "a collector with the path that is added to it",
      ["tracing.otlpEndpoint=http://collector:4318/v1/traces"],
      /tracing\.otlpEndpoint \(http:\/\/collector:4318\/v1\/traces\) ends with \/v1\/traces/,
    ],
    [
      "a way to no collector",
      ["tracing.headersSecretName=otel"],
      /tracing\.otlpEndpoint is empty: set it to the URL of the collector/,
    ],
    ["an HTTPRoute without a Gateway", ["api.httpRoute.enabled=true"], /api\.httpRoute\.parentRefs is empty/],
  ])("%s", async (_, sets, reason) => {
    const { code, stderr } = await tryHelm([
      "template",
      ...RELEASE,
      ...MINIMAL,
      ...sets.flatMap((set) => ["--set", set]),
    ]);
    expect(stderr).toMatch(reason);
    expect(code).toBe(1);
  });

  it("nothing at all: both things that must be said", async () => {
    const { stderr } = await tryHelm(["template", ...RELEASE]);
    expect(stderr).toMatch(/pipes\.namespaces is empty.*\n.*api\.tls\.enabled requires a certificate/s);
  });

  it("a Kubernetes that is too old", async () => {
    const { stderr } = await tryHelm(["template", ...RELEASE, ...MINIMAL, "--kube-version", "1.29.9"]);
    expect(stderr).toMatch(
      /requires kubeVersion: >=1\.30\.0-0 which is incompatible with Kubernetes v1\.29\.9/,
    );
  });
});

describe("what follows from the values:", () => {
  it("a change of tiers restarts both processes, and nothing else does", async () => {
    const checksums = async (...args: string[]) =>
      JSON.stringify(await rendered(...MINIMAL, ...args)).match(/"checksum\/tiers":"\w+"/g);
    const before = await checksums();
    expect(before).toHaveLength(2);
    expect(await checksums("--set", "commonLabels.a=b")).toEqual(before);
    const after = await checksums("--set", "tiers.basic.maximumCpuMillicores=4000");
    expect(after?.[0]).not.toBe(before?.[0]);
    expect(after?.[1]).toBe(after?.[0]);
  });

  it("the definition and the records are kept on uninstall, unless the definition is not wanted", async () => {
    const kept = async (...args: string[]) =>
      (await rendered(...MINIMAL, ...args))
        .filter((object) => JSON.stringify(object).includes('"helm.sh/resource-policy":"keep"'))
        .map(({ kind }) => kind);
    expect(await kept()).toEqual(["Namespace", "CustomResourceDefinition"]);
    expect(await kept("--set", "crds.keep=false")).toEqual(["Namespace"]);
  });

  it.each(["api", "controller"] as const)(
    "the %s starts Node as the benchmarks have measured it",
    async (component) => {
      const template = `templates/${component}-deployment.yaml`;
      const [deployment] = await rendered(...MINIMAL, "--show-only", template);
      const [container] = started.parse(deployment).spec.template.spec.containers;
      const [node, program] = entrypoint();
      const { args, env } = NODE[component];
      expect(container.command ?? entrypoint()).toEqual([node, ...args, program]);
      expect(container.env).toEqual(
        expect.arrayContaining(Object.entries(env).map(([name, value]) => ({ name, value }))),
      );
    },
  );

  it("each option of the processes can be set, but those that a pod decides itself", async () => {
    const set = JSON.stringify(
      await Promise.all(VALUE_SETS.map((each) => rendered("--values", valuesFile(each)))),
    );
    const variables = [apiSettings, controllerSettings].flatMap((options) => declaredOptions(options));
    const missing = variables.filter(({ variable }) => !set.includes(`"${variable}"`)).map(({ key }) => key);
    expect([...new Set(missing)].sort()).toEqual(["dryRun", "identity", "kubeconfig"]);
  });

  it.each([
    ["http://collector:4318", 4318],
    ["https://collector.example.com/otel", 443],
    ["http://[2001:db8::1]", 80],
  ])(
    "both processes may reach the collector %s, and DNS, and by default nothing of both",
    async (url, port) => {
      const egress = async (...args: string[]) => {
        const template = "templates/networkpolicies.yaml";
        const policies = await rendered(...MINIMAL, "--show-only", template, ...args);
        return policies.slice(0, 2).map((policy) => networkPolicy.parse(policy).spec.egress.slice(1));
      };
      expect(await egress()).toEqual([[], []]);
      const allowed = [{ ports: [{ port: 53, protocol: "UDP" }, { port: 53 }] }, { ports: [{ port }] }];
      expect(await egress("--set", `tracing.otlpEndpoint=${url}`)).toEqual([allowed, allowed]);
    },
  );

  it("the controller's only right outside of the listed namespaces is to list nodes, and rbac.nodes takes it away", async () => {
    const names = async (...args: string[]) =>
      (await rendered(...MINIMAL, "--set", "rbac.aggregate=false", ...args))
        .filter(({ kind }) => /^ClusterRole/.test(kind))
        .map(({ kind, metadata: { name } }) => `${kind} ${name}`);
    const name = "release-pipe-scaling-operator-controller-nodes.pipe-scaling-system";
    expect(await names()).toEqual([`ClusterRole ${name}`, `ClusterRoleBinding ${name}`]);
    expect(await names("--set", "rbac.nodes=false")).toEqual([]);
    expect(await names("--set", "rbac.create=false")).toEqual([]);
  });

  it("resizes in place have permissions and policies only with rbac.inPlaceResize", async () => {
    const made = async (...args: string[]) => {
      const objects = JSON.stringify(await rendered(...MINIMAL, ...args));
      return ["pods/resize", '"replicasets"', "controller-resize", "'paused'"].map((text) =>
        objects.includes(text),
      );
    };
    expect(await made()).toEqual([false, false, false, false]);
    expect(await made("--set", "rbac.inPlaceResize=true")).toEqual([true, true, true, true]);
  });

  it("no account has a wildcard, and the controller's has no Secret", async () => {
    for (const set of VALUE_SETS) {
      const rules = (await rendered("--values", valuesFile(set))).filter(({ kind }) => /Role$/.test(kind));
      expect(JSON.stringify(rules)).not.toContain('"*"');
      const ofController = rules.filter(({ metadata }) => metadata.name.includes("controller"));
      expect(JSON.stringify(ofController)).not.toContain("secrets");
    }
  });
});

const started = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.tuple([
          z.object({ command: z.array(z.string()).optional(), env: z.array(z.looseObject({})) }),
        ]),
      }),
    }),
  }),
});

const networkPolicy = z.object({ spec: z.object({ egress: z.array(z.unknown()) }) });

function* everyField(schema: ValueSchema, path: string): Generator<[string, ValueSchema]> {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    yield [`${path}.${name}`, field];
    yield* everyField(field, `${path}.${name}`);
  }
  for (const below of ["items", "additionalProperties"]) {
    const field = schema[below];
    if (isSchema(field)) yield* everyField(field, `${path}[]`);
  }
}

function isSchema(value: unknown): value is ValueSchema {
  return typeof value === "object" && value !== null;
}
