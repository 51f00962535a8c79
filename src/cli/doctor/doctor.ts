import { recordsCommand } from "../admin/command.ts";
import { EXIT_DONE, EXIT_UNHEALTHY } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { outputOption } from "../options.ts";
import { printData } from "../output.ts";
import { counted, labeled, lineWidth, padded, painter, type Style, UNBROKEN } from "../view/text.ts";
import { type CheckResult, runChecks } from "./checks.ts";
import { Cluster } from "./cluster.ts";
import { SEVERITIES, type Severity } from "./result.ts";

export const doctor = recordsCommand({
  name: "doctor",
  summary: "check the installation and its records",
  details:
    "Checks the installation: the version of the API server, the CRD, the two processes with their permissions,\n" +
    "admission policies, tiers and TLS Secret, and the Lease of the controller.\n\n" +
    "Checks that all records are valid, that the organizations in them exist, and that the namespaces in them\n" +
    "exist and are watched.\n\n" +
    "Checks the pipes for these problems:\n" +
    "- labels with typos, only in a pod template, of an unknown service, in a namespace that is not watched, or on\n" +
    "  workloads that are neither Deployments nor StatefulSets\n" +
    "- pipes whose pod template an Argo Rollout uses, and pods whose size differs from their pipe\n" +
    "- fixed memory sizes in arguments and variables, and missing requirements of resizes in place\n" +
    "- Deployments and StatefulSets that a killed controller left paused\n\n" +
    "Prints a remedy for each problem, and changes nothing. Exits with 3 if there is an error. To see the progress\n" +
    "of rescales and what blocks them, such as an unknown tier, use status.\n\n" +
    "Checks everything that your kubeconfig can read, and lists the checks that it skipped. A full check needs\n" +
    "these permissions, which a cluster administrator has:\n" +
    "- list Namespaces, ValidatingAdmissionPolicies and their bindings\n" +
    "- list PipeScalings, pods, Deployments and all other workloads in all namespaces\n" +
    "- list ConfigMaps and Secrets in the namespace of the records\n" +
    "- get CustomResourceDefinitions, the Lease, and the ConfigMap and the Secret of the processes\n" +
    "- create subjectaccessreviews",
  examples: ["doctor", "doctor --output json"],
  options: outputOption,
  async run({ kube, place, clock }, { output }, io) {
    const cluster = new Cluster({ client: kube, signal: io.signal, clock, place });
    const checked = await runChecks(cluster);
    const results = SEVERITIES.flatMap((severity) => checked.filter((each) => each.severity === severity));
    if (output === "table") printResults(io, results);
    else printData(io, output, { results });
    return results.some(({ severity }) => severity === "error") ? EXIT_UNHEALTHY : EXIT_DONE;
  },
});

const STYLES: Readonly<Record<Severity, Style>> = {
  error: "red",
  warning: "yellow",
  note: "cyan",
  ok: "green",
};

/** Width of the longest severity, `warning`, and two spaces. */
const LABEL_COLUMNS = 9;

function printResults(io: Pick<Io, "out" | "terminal">, results: readonly CheckResult[]): void {
  const columns = lineWidth(io);
  const paint = painter(io);
  const lines = results.flatMap(({ severity, message, remedy }) => {
    const label = paint(STYLES[severity], severity) + padded(severity, LABEL_COLUMNS).slice(severity.length);
    const indent = " ".repeat(LABEL_COLUMNS);
    return [
      ...labeled(label, message, columns),
      ...(remedy === undefined ? [] : labeled(`${indent}→ `, remedy, UNBROKEN)),
    ];
  });
  const counts = SEVERITIES.filter((each) => each !== "ok").map((each) =>
    counted(results.filter(({ severity }) => severity === each).length, each),
  );
  io.out([...lines, "", `${counts.join(", ")}.`].map((line) => `${line}\n`).join(""));
}
