import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { run } from "@pipe-scaling/local-cluster/run";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it, onTestFinished } from "vitest";
import { stepsOf } from "../e2e/tutorial.ts";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { UnpackedImage } from "./image.ts";
import { PodProcess } from "./pod-process.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Parts of a checkout that the page uses. */
const CHECKOUT = ["crds", "deploy", "node_modules", "package.json", "src"];
/** Commands that need a container engine, running pods or a registry of packages. */
const NOT_HERE = /^(docker|helm test|npm ci|kubectl port-forward)\b/;
const SERVED = { what: "PipeScalings to be served" };
/** The address of the forwarded port. */
const FORWARDED = "https://localhost:8443";

/** The sections of docs/install.md by their headings, each with its blocks of commands. */
const SECTIONS = new Map(
  readFileSync(join(ROOT, "docs", "install.md"), "utf8")
    .split(/^##+ /m)
    .map((text) => [text.slice(0, text.indexOf("\n")), text]),
);

/** Returns the commands of these sections, in order. */
function commandsOf(...headings: readonly string[]): string[] {
  return headings
    .flatMap((heading) => stepsOf(SECTIONS.get(heading) ?? ""))
    .map(({ commands }) => commands)
    .filter((text) => !NOT_HERE.test(text));
}

/** Returns the errors that a section shows. */
function errorsIn(heading: string): string[] {
  const blocks = (SECTIONS.get(heading) ?? "").matchAll(/^```text\n(.*?)\n```$/gms);
  return [...blocks].map(([, text = ""]) => text);
}

const [CONFLICT = "", CRD_CONFLICT = ""] = errorsIn("After a manual change");
const [NOT_OWNED = ""] = errorsIn("Take over existing objects");
/** How the runbook ends the tokens of the controller. */
const [DELETE_ACCOUNT = ""] =
  /kubectl delete serviceaccount.*\n/.exec(
    readFileSync(join(ROOT, "docs", "runbooks", "PipeScalingNoLeader.md"), "utf8"),
  ) ?? [];
/** A change by hand that causes that error. */
const MANUAL_CHANGE =
  "kubectl set image deployment/pipe-scaling-operator-controller controller=example.com/other:1 --namespace pipe-scaling-system\n";

const CRD_FILE = "crds/pipes.clouddb.dev_pipescalings.yaml";
/** Text of the CRD, and what another version has instead. */
const [TEXT, OTHER_TEXT] = ["The size for people", "The size as text"];
const OTHER_CRD = `sed "s/${TEXT}/${OTHER_TEXT}/" ${CRD_FILE} | kubectl apply --server-side -f -
`;
/** Copies the chart, with another CRD. */
const OTHER_CHART = `mkdir next && cp -r deploy/chart/pipe-scaling-operator next/
sed "s/${TEXT}/${OTHER_TEXT}/" ${CRD_FILE} > next/pipe-scaling-operator/files/crd.yaml
`;

/** Other changes by hand, each with a part of the field in the error. */
const OTHER_CHANGES = [
  ["kubectl label service pipe-scaling-operator-api app.kubernetes.io/version=9 --overwrite", "/version"],
  [`kubectl patch service pipe-scaling-operator-api --patch '{"spec": {"type": "NodePort"}}'`, ".spec.type"],
  [
    "kubectl get configmap pipe-scaling-operator-tiers --output yaml | sed s/24000/8000/ | kubectl replace --filename -",
    ".data.tiers.yaml",
  ],
] as const;

/** The repository of the image. */
const BUILD = commandsOf("Build the image");
const [UPGRADE = "", ROLLBACK = ""] = commandsOf("Upgrade");
const [DIFF = "", FORCED_UPGRADE = "", FORCED_ROLLBACK = ""] = commandsOf("After a manual change");
const REMOVE = commandsOf("Remove");
const [TAKE_OVER = ""] = commandsOf("Take over existing objects");
const REMOVE_WITHOUT_HELM = commandsOf("Remove without Helm");
const REMOVE_ALL = commandsOf("Remove everything else");

const RELEASE = {
  name: "pipe-scaling-operator",
  namespace: "pipe-scaling-system",
  records: "pipe-scaling-records",
  pipes: "acme-pipes",
};

/** A shell in a checkout as the reader has it, and an empty cluster. */
async function desk(): Promise<{ cluster: Cluster; type: (command: string) => Promise<string> }> {
  const dir = temporaryFolder();
  // A cluster of its own, because the page installs a release into an empty cluster.
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  for (const name of CHECKOUT) symlinkSync(join(ROOT, name), join(dir, name));
  const home = join(dir, "home");
  mkdirSync(home);
  const env = {
    // The node of the reader may be older; the page puts that of the checkout first on the PATH.
    PATH: [cluster.binaries.dir, environment["PATH"]].join(delimiter),
    HOME: home,
    KUBECONFIG: cluster.kubeconfig,
  };
  const type = async (command: string) => {
    // All commands share one shell, with its variables and functions.
    const script = `if [ -e shell ]; then . ./shell; fi\nset -a\n${command}\n{ export -p; declare -f; } > shell`;
    const { code, stdout, stderr } = await run("bash", ["-eu", "-c", script], { cwd: dir, env });
    if (code !== 0) throw new Error(`${command}${stdout}${stderr}`);
    return stdout;
  };
  return { cluster, type };
}

/** Returns the names of all objects of the release, of every kind and in every namespace. */
async function labeled(cluster: Cluster): Promise<readonly string[]> {
  const kinds = await kubectl(cluster, ["api-resources", "--verbs=list", "--output=name"]);
  const selector = `app.kubernetes.io/instance=${RELEASE.name}`;
  const all = ["--all-namespaces", "--selector", selector, "--output=name"];
  const names = await kubectl(cluster, ["get", kinds.trim().replaceAll("\n", ","), ...all]);
  return names.split("\n").filter(Boolean).toSorted();
}

/** Starts the processes of the release, because simulated pods run nothing. Returns the address of the API. */
async function startProcesses(cluster: Cluster): Promise<string> {
  const image = await UnpackedImage.build();
  onTestFinished(() => image[Symbol.dispose]());
  const start = async (component: "api" | "controller") => {
    const started = await PodProcess.start(image, cluster, RELEASE, component);
    onTestFinished(async () => {
      await started.stop();
    });
    return started;
  };
  const { url } = await start("api");
  await start("controller");
  return url.replace("127.0.0.1", "localhost");
}

describe("docs/install.md", { timeout: 300_000 }, () => {
  it("installs the operator with Helm, resizes a pipe in place, and removes the operator", async () => {
    const sections = ["Install", "Resize a pipe", "Decide", "Several releases", "Upgrade"];
    const story = [
      ...BUILD,
      ...commandsOf(...sections, "The CRD on its own"),
      ...REMOVE,
      // Another release can take over what remains.
      TAKE_OVER.replace("pipe-scaling-operator", "scaling").replace(RELEASE.namespace, "platform"),
      ...REMOVE_ALL,
    ];
    expect(story).toHaveLength(21);
    const { cluster, type } = await desk();
    let url = FORWARDED;
    for (const command of story) {
      // After a change, a CRD is not served for a moment, which is shorter than the time to type a command.
      if (/^pipe-scaling /m.test(command))
        await waitFor(() => kubectl(cluster, ["get", "psc", "-A"]), SERVED);
      if (/^kubectl wait --for=create psc/.test(command)) url = await startProcesses(cluster);
      const printed = await type(command.replace(FORWARDED, url));
      if (/scaling set/.test(command)) expect(printed).toContain("1 in place");
      if (/get deployment example/.test(command)) expect(printed).toContain('"cpu":"2"');
    }
    expect(await kubectl(cluster, ["get", "crd", "-o", "name"])).toBe("");
  });

  it("repairs a release after a manual change, which makes an upgrade and a rollback fail", async () => {
    const { type } = await desk();
    for (const command of [...BUILD, ...commandsOf("Install")]) await type(command);
    await type(UPGRADE);

    await type(MANUAL_CHANGE);
    await expect(type(UPGRADE)).rejects.toThrow(CONFLICT);
    expect(await type(DIFF)).toMatch(/^-.*image: example\.com\/other:1$/m);
    await type(FORCED_UPGRADE);
    expect(await type(DIFF)).toBe("");
    await type(UPGRADE);

    await type(MANUAL_CHANGE);
    await expect(type(ROLLBACK)).rejects.toThrow(/conflict with "kubectl-set"/);
    expect(await type(FORCED_ROLLBACK)).toMatch(/^1 .*Install complete/m);
    await type(ROLLBACK);
    await type(UPGRADE);
  });

  it("needs --force-conflicts once more for a manual change that was kept in the values", async () => {
    const { type } = await desk();
    for (const command of [...BUILD, ...commandsOf("Install")]) await type(command);
    const timeout = (command: string, value: string) =>
      command.replace("--values", `--set controller.config.rolloutTimeout=${value} --values`);
    const variable = "PIPE_SCALING_ROLLOUT_TIMEOUT=30m --namespace pipe-scaling-system";
    await type(`kubectl set env deployment/pipe-scaling-operator-controller ${variable}\n`);
    await expect(type(UPGRADE)).rejects.toThrow(/conflict with "kubectl-set"/);
    await type(timeout(FORCED_UPGRADE, "30m"));
    expect(await type(DIFF)).toBe("");
    await type(timeout(UPGRADE, "30m"));
    await expect(type(timeout(UPGRADE, "20m"))).rejects.toThrow(/conflict with "kubectl-set"/);
    await type(timeout(FORCED_UPGRADE, "20m"));
    await type(UPGRADE);
  });

  it("repairs a release after other manual changes", async () => {
    const { type } = await desk();
    for (const command of [...BUILD, ...commandsOf("Install")]) await type(command);
    await type("kubectl config set-context --current --namespace pipe-scaling-system\n");
    for (const [change, field] of OTHER_CHANGES) {
      await type(`${change}\n`);
      await expect(type(UPGRADE), change).rejects.toThrow(field);
      await type(FORCED_UPGRADE);
      await type(UPGRADE);
    }
  });

  it("upgrades a release that was scaled to 0 and has lost its ServiceAccount, which restores both", async () => {
    const { cluster, type } = await desk();
    for (const command of [...BUILD, ...commandsOf("Install")]) await type(command);
    const name = "pipe-scaling-operator-controller";
    const get = (kind: string, ...args: string[]) =>
      kubectl(cluster, ["get", kind, name, "-n", RELEASE.namespace, ...args]);
    await kubectl(cluster, ["scale", "deployment", name, "-n", RELEASE.namespace, "--replicas", "0"]);
    await type(DELETE_ACCOUNT.replace("<namespace>", RELEASE.namespace));
    await expect(get("serviceaccount")).rejects.toThrow(/not found/);
    await type(UPGRADE);
    await get("serviceaccount");
    expect(await get("deployment", "-o", "jsonpath={.spec.replicas}")).toBe("2");
  });

  const manifests = [...commandsOf("Without Helm"), MANUAL_CHANGE, ...commandsOf("Upgrade without Helm")];
  /** The page describes this way in a sentence: `helm template` with other values. */
  const rendered = [
    "kubectl create namespace pipe-scaling-system",
    "kubectl create namespace acme-pipes",
    "kubectl create namespace globex-pipes",
    `helm template pipe-scaling-operator deploy/chart/pipe-scaling-operator --namespace pipe-scaling-system \
      --set image.repository="$IMAGE",api.tls.enabled=false,monitoring.authentication.enabled=true \
      --set 'pipes.namespaces={acme-pipes,globex-pipes}' --skip-tests | kubectl apply --server-side -f -`,
  ];

  it.each([
    ["the manifests, with an upgrade after a manual change", manifests],
    ["the chart rendered for listed namespaces", rendered],
  ])("installs the operator without Helm, and removes all of it but the data: %s", async (_, installing) => {
    expect(manifests).toHaveLength(4);
    const [removal = ""] = REMOVE_WITHOUT_HELM;
    expect(REMOVE_WITHOUT_HELM).toHaveLength(1);
    expect(removal).toMatch(/rolebindings.*clusterrolebindings.*validatingadmissionpolicies/s);
    const { cluster, type } = await desk();
    for (const command of [...BUILD, ...installing]) await type(command);
    expect((await labeled(cluster)).filter((name) => /^rolebinding/.test(name)).length).toBeGreaterThan(1);
    await type(removal);
    expect(await labeled(cluster)).toEqual([
      "customresourcedefinition.apiextensions.k8s.io/pipescalings.pipes.clouddb.dev",
      "namespace/pipe-scaling-records",
    ]);
    for (const command of REMOVE_ALL) await type(command);
    expect(await labeled(cluster)).toEqual([]);
  });

  it("replaces a Helm release by plain manifests, which can be applied again", async () => {
    const { cluster, type } = await desk();
    const [certificate = "", apply = ""] = commandsOf("Without Helm");
    const change = commandsOf("From Helm to plain manifests");
    expect([REMOVE.length, change.length]).toEqual([2, 1]);
    for (const command of [...BUILD, ...commandsOf("Install"), ...REMOVE, certificate, ...change])
      await type(command);
    await type(apply.replace(/^kubectl create .*\n/gm, ""));
    expect(await kubectl(cluster, ["get", "secrets", "-A", "-l", "owner=helm", "-o", "name"])).toBe("");
    const roles = [
      "get",
      "roles,rolebindings",
      "-A",
      "-l",
      "app.kubernetes.io/managed-by=Helm",
      "-o",
      "name",
    ];
    expect(await kubectl(cluster, roles)).toBe("");
  });

  it("replaces plain manifests by a Helm release of another name, which takes over the records", async () => {
    const { cluster, type } = await desk();
    const [, values = "", install = ""] = commandsOf("Install");
    const [stop = ""] = REMOVE;
    for (const command of [...BUILD, ...commandsOf("Without Helm"), stop, ...REMOVE_WITHOUT_HELM])
      await type(command);
    const renamed = (command: string) => command.replace("pipe-scaling-operator", "scaling");
    await type(values);
    await expect(type(renamed(install))).rejects.toThrow(NOT_OWNED);
    const withoutForce = renamed(TAKE_OVER).replace("--force-conflicts", "");
    await expect(type(withoutForce)).rejects.toThrow('conflict with "kubectl"');
    // The failed attempt has left a release.
    await type(renamed(TAKE_OVER));
    await type(renamed(UPGRADE));
    const owner = "jsonpath={.metadata.labels.app\\.kubernetes\\.io/instance}";
    expect(await kubectl(cluster, ["get", "namespace", RELEASE.records, "-o", owner])).toBe("scaling");
  });

  it("takes over a CRD of another version and a namespace that were created with kubectl", async () => {
    const { type } = await desk();
    const [create = "", values = "", install = ""] = commandsOf("Install");
    for (const command of [...BUILD, create, values]) await type(command);
    await type(`kubectl create namespace ${RELEASE.records}\n${OTHER_CRD}`);
    await expect(type(install)).rejects.toThrow(NOT_OWNED);
    await type(TAKE_OVER);
    await type(UPGRADE);
  });

  it("upgrades to another CRD after the CRD was applied with kubectl, with the flag of the page", async () => {
    const { cluster, type } = await desk();
    for (const command of [...BUILD, ...commandsOf("Install"), ...commandsOf("The CRD on its own")])
      await type(command);
    // A CRD without changes causes no conflict.
    await type(UPGRADE);
    await type(OTHER_CHART);
    const next = (command: string) => command.replace(" deploy/chart/", " next/");
    await expect(type(next(UPGRADE))).rejects.toThrow(CRD_CONFLICT);
    await type(next(FORCED_UPGRADE));
    await type(UPGRADE);
    expect(await kubectl(cluster, ["get", "crd", "-o", "yaml"])).not.toContain(OTHER_TEXT);
  });

  it("returns a CRD that is managed on its own to the release", async () => {
    const { type } = await desk();
    const [create = "", values = "", install = ""] = commandsOf("Install");
    const separate = install.replace("--wait", "--wait --set crds.enabled=false");
    for (const command of [...BUILD, create, values, ...commandsOf("The CRD on its own"), separate])
      await type(command);
    await expect(type(UPGRADE)).rejects.toThrow("invalid ownership metadata");
    await type(TAKE_OVER);
    await type(UPGRADE);
  });

  it("keeps an addition to an object of the release, which the comparison does not show", async () => {
    const { type } = await desk();
    for (const command of [...BUILD, ...commandsOf("Install")]) await type(command);
    const deployment = "deployment/pipe-scaling-operator-controller --namespace pipe-scaling-system";
    await type(`kubectl set env ${deployment} ADDED=1\n`);
    expect(await type(DIFF)).toBe("");
    await type(UPGRADE);
    expect(await type(`kubectl set env ${deployment} --list\n`)).toContain("ADDED=1");
  });
});
