import * as z from "zod";
import packageJson from "../../../package.json" with { type: "json" };
import { systemClock } from "../../runtime/clock.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { readTiers, tiersFileSetting } from "../../settings/tiers.ts";
import { withClient } from "../admin/connection.ts";
import { defineCommand } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { EXIT_DONE, EXIT_UNHEALTHY } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { printData } from "../output.ts";
import { painter, type Style } from "../style.ts";
import { labeled, padded } from "../view/text.ts";
import { runChecks } from "./checks.ts";
import type { Report, Severity } from "./result.ts";

export const doctor = defineCommand({
  name: "doctor",
  summary: "check the installation and its records",
  details:
    "Checks the API server (version, latency, clock), the CRD, the two processes with their permissions, the\n" +
    "lease of the controller, all records, and all PipeScalings and pipes. Each result has a remedy. Writes\n" +
    "nothing. Exits with 3 if there is an error.\n\n" +
    "Checks what your kubeconfig may read, and lists what it may not. A full check needs permission to list\n" +
    "Deployments, PipeScalings and autoscalers in all namespaces; ConfigMaps and Secrets in the namespace of the\n" +
    "records; to get Namespaces, CustomResourceDefinitions, the Lease and the ConfigMap of the tiers; and to\n" +
    "create subjectaccessreviews. A cluster administrator has all of them.",
  examples: ["doctor", "doctor --tiers-file tiers.yaml", "doctor --output json"],
  options: z.object({ ...tiersFileSetting, ...outputOption, ...clusterSettings }),
  async run({ tiersFile, output, kubeconfig, namespace }, io) {
    const tiers = tiersFile === undefined ? undefined : new Set(readTiers(tiersFile).keys());
    const { signal } = io;
    const ownVersion = packageJson.version;
    const report = await withClient(kubeconfig, (client) =>
      runChecks({ client, clock: systemClock, signal, records: namespace, tiers, ownVersion }),
    );
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
  const { terminal } = io;
  // In a pipe lines are not broken.
  const columns = terminal.output ? terminal.columns() : Number.MAX_SAFE_INTEGER;
  const paint = painter(io);
  const lines = report.all.flatMap(({ severity, message, remedy }) => {
    const label = paint(STYLES[severity], severity) + padded(severity, LABEL_COLUMNS).slice(severity.length);
    const indent = " ".repeat(LABEL_COLUMNS);
    return [
      ...labeled(label, message, columns),
      ...(remedy === undefined ? [] : labeled(`${indent}→ `, remedy, columns)),
    ];
  });
  const count = (severity: Severity) => {
    const number = report.count(severity);
    return `${number} ${severity}${number === 1 ? "" : "s"}`;
  };
  const summary = `${count("error")}, ${count("warning")}, ${count("note")}.`;
  io.out([...lines, "", summary].map((line) => `${line}\n`).join(""));
}
