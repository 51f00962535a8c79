import { systemClock } from "../../runtime/clock.ts";
import { recordsCommand } from "../admin/command.ts";
import { EXIT_DONE, EXIT_UNHEALTHY } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { outputOption } from "../options.ts";
import { printData } from "../output.ts";
import { counted, labeled, lineWidth, padded, painter, type Style } from "../view/text.ts";
import { type CheckResult, runChecks } from "./checks.ts";
import { Cluster } from "./cluster.ts";
import { SEVERITIES, type Severity } from "./result.ts";

export const doctor = recordsCommand({
  name: "doctor",
  summary: "check the installation and its records",
  details:
    "Checks the installation: the version of the API server, the CRD, the two processes with their permissions,\n" +
    "admission policies, tiers and TLS Secret, and the Lease of the controller.\n\n" +
    "Checks all records, and whether the organizations and namespaces that they name exist and are watched.\n\n" +
    "Checks the pipes: labels with typos, of an unknown service, in a namespace that is not watched, or on other\n" +
    "workloads than Deployments and StatefulSets; pipes that are the pod template of an Argo Rollout; pods whose\n" +
    "size differs from their pipe; memory sizes in arguments and variables that no resize changes; requirements of\n" +
    "resizes in place; and Deployments and StatefulSets that a killed controller left paused.\n\n" +
    "Each result has a remedy. Writes nothing. Exits with 3 if there is an error. For the progress of rescales and\n" +
    "what blocks them, such as an unknown tier, see pipe-scaling status.\n\n" +
    "Checks what your kubeconfig may read, and lists what it may not. A full check needs permission to list\n" +
    "Namespaces, ValidatingAdmissionPolicies and their bindings; PipeScalings, pods, Deployments and all other\n" +
    "workloads in all namespaces; and ConfigMaps and Secrets in the namespace of the records; to get\n" +
    "CustomResourceDefinitions, the Lease, and the ConfigMap and the Secret of the processes; and to create\n" +
    "subjectaccessreviews. A cluster administrator has all of them.",
  examples: ["doctor", "doctor --output json"],
  options: outputOption,
  async run({ kube, namespace }, { output }, io) {
    const options = { client: kube, signal: io.signal, clock: systemClock, records: namespace };
    const checked = await runChecks(new Cluster(options));
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

/** `warning  ` */
const LABEL_COLUMNS = 9;

function printResults(io: Pick<Io, "out" | "terminal">, results: readonly CheckResult[]): void {
  const columns = lineWidth(io);
  const paint = painter(io);
  const lines = results.flatMap(({ severity, message, remedy }) => {
    const label = paint(STYLES[severity], severity) + padded(severity, LABEL_COLUMNS).slice(severity.length);
    const indent = " ".repeat(LABEL_COLUMNS);
    return [
      ...labeled(label, message, columns),
      ...(remedy === undefined ? [] : labeled(`${indent}→ `, remedy, columns)),
    ];
  });
  const counts = SEVERITIES.filter((each) => each !== "ok").map((each) =>
    counted(results.filter(({ severity }) => severity === each).length, each),
  );
  io.out([...lines, "", `${counts.join(", ")}.`].map((line) => `${line}\n`).join(""));
}
