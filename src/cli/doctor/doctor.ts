import packageJson from "../../../package.json" with { type: "json" };
import { systemClock } from "../../runtime/clock.ts";
import { readTiers, tiersFileSetting } from "../../settings/tiers.ts";
import { recordsCommand } from "../admin/command.ts";
import { EXIT_DONE, EXIT_UNHEALTHY } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { outputOption } from "../options.ts";
import { printData } from "../output.ts";
import { counted, labeled, lineWidth, padded, painter, type Style } from "../view/text.ts";
import { runChecks } from "./checks.ts";
import type { Report, Severity } from "./result.ts";

export const doctor = recordsCommand({
  name: "doctor",
  summary: "check the installation and its records",
  details:
    "Checks the API server (version, clock), the CRD, the two processes with their permissions, the lease of the\n" +
    "controller, all records, all PipeScalings and pipes, and why pipes cannot be resized in place if they should\n" +
    "be. Each result has a remedy. Writes nothing. Exits with 3 if there is an error.\n\n" +
    "Checks what your kubeconfig may read, and lists what it may not. A full check needs permission to list\n" +
    "Deployments, PipeScalings and autoscalers in all namespaces; ConfigMaps and Secrets in the namespace of the\n" +
    "records; to get Namespaces, CustomResourceDefinitions, the Lease and the ConfigMap of the tiers; and to\n" +
    "create subjectaccessreviews. A cluster administrator has all of them.",
  examples: ["doctor", "doctor --tiers-file tiers.yaml", "doctor --output json"],
  options: { ...tiersFileSetting, ...outputOption },
  async run({ kube, namespace }, { tiersFile, output }, io) {
    const report = await runChecks({
      client: kube,
      clock: systemClock,
      signal: io.signal,
      records: namespace,
      tiers: tiersFile === undefined ? undefined : new Set(readTiers(tiersFile).keys()),
      ownVersion: packageJson.version,
    });
    if (output === "table") printReport(io, report);
    else printData(io, output, { results: report.all });
    return report.count("error") > 0 ? EXIT_UNHEALTHY : EXIT_DONE;
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

function printReport(io: Pick<Io, "out" | "terminal">, report: Report): void {
  const columns = lineWidth(io);
  const paint = painter(io);
  const lines = report.all.flatMap(({ severity, message, remedy }) => {
    const label = paint(STYLES[severity], severity) + padded(severity, LABEL_COLUMNS).slice(severity.length);
    const indent = " ".repeat(LABEL_COLUMNS);
    return [
      ...labeled(label, message, columns),
      ...(remedy === undefined ? [] : labeled(`${indent}→ `, remedy, columns)),
    ];
  });
  const count = (severity: Severity) => counted(report.count(severity), severity);
  const summary = `${count("error")}, ${count("warning")}, ${count("note")}.`;
  io.out([...lines, "", summary].map((line) => `${line}\n`).join(""));
}
