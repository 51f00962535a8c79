import packageJson from "../package.json" with { type: "json" };
import { admin } from "./cli/admin/admin.ts";
import { defineCommand, section } from "./cli/command.ts";
import { completion } from "./cli/completion/command.ts";
import { kubectlCompletion } from "./cli/completion/kubectl.ts";
import { backup } from "./cli/customer/backup.ts";
import { profile } from "./cli/customer/profile.ts";
import { keys, members, organizations, services } from "./cli/customer/records.ts";
import { scaling } from "./cli/customer/scaling.ts";
import { doctor } from "./cli/doctor/doctor.ts";
import type { Io } from "./cli/io.ts";
import { printList } from "./cli/output.ts";
import type { ProgramSpec } from "./cli/program.ts";
import { status } from "./cli/status/status.ts";
import { serverMessage } from "./kube/errors.ts";
import { runProcess } from "./run-process.ts";
import { apiSettings, toApiSettings } from "./settings/api.ts";
import { commandClusterSettings } from "./settings/cluster.ts";
import { type ControllerSettings, controllerSettings, toControllerSettings } from "./settings/controller.ts";

/*
 * All commands. A command loads its large dependencies only when it runs, so that an administrative command does not
 * wait for the HTTP server to load.
 */

const api = defineCommand({
  name: "api",
  summary: "run the management API",
  details:
    "Serves the organizations, services and keys of the records over HTTP, and writes the size\n" +
    "that a caller requests into the PipeScaling of the service. Any number of these processes may run.",
  examples: ["api --kubeconfig ~/.kube/config", "api --host 0.0.0.0 --tls-cert tls.crt --tls-key tls.key"],
  options: apiSettings,
  run: (values) => {
    const settings = toApiSettings(values);
    return runProcess("api", values.logLevel, async (log, signal) => {
      const { runApi } = await import("./api/setup.ts");
      await runApi(settings, log, signal);
    });
  },
});

const controller = defineCommand({
  name: "controller",
  summary: "run the controller",
  details:
    "Resizes the database pipes of each service to the size that its PipeScaling requests, a few at a time, and\n" +
    "reports the progress. If several controllers run, one is the leader and the others wait to take over.",
  examples: [
    "controller --kubeconfig ~/.kube/config",
    "controller --pipe-namespaces acme-pipes,globex-pipes --rollout-timeout 30m",
    "controller --tiers-file new-tiers.yaml --dry-run",
  ],
  options: controllerSettings,
  run: (values, io) => {
    const settings = toControllerSettings(values);
    if (settings.dryRun) return printDryRun(settings, io);
    return runProcess("controller", values.logLevel, async (log, signal) => {
      const { runController } = await import("./controller/process.ts");
      await runController(settings, log, signal);
    });
  },
});

async function printDryRun(settings: ControllerSettings, io: Io): Promise<void> {
  const { dryRun } = await import("./controller/preview/preview.ts");
  const { steps, services, pipes, unreadable } = await dryRun(settings, io.signal);
  if (steps.length > 0) {
    printList(
      io,
      "table",
      ["service", "namespace", "pipe", "size", "desired", "action"],
      steps.map((each) => ({ ...each })),
    );
  }
  for (const [namespace, refusal] of unreadable)
    io.err(`Left out the namespace ${namespace}: ${serverMessage(refusal)}\n`);
  const none = steps.length === 0 ? " There is nothing to do." : "";
  io.err(`Dry run: nothing was written. Services: ${services}, pipes: ${pipes}.${none}\n`);
}

const PROCESSES = "Operator processes:";
const BY_KUBECONFIG = "Platform team commands (use a kubeconfig):";
const BY_KEY = "Customer commands (use an API key):";

const { version } = packageJson;
const kubeconfigCommands = [...admin, status, doctor];

/** The program with all commands. Its help and its completion are derived from this list. */
export const COMMANDS: ProgramSpec = {
  version,
  description:
    "Resizes the change-data-capture pipes of database services on Kubernetes. Runs the API and the controller, and provides the command line for platform teams and customers.",
  commands: [
    ...section(PROCESSES, api, controller),
    ...section(BY_KUBECONFIG, ...kubeconfigCommands),
    ...section(BY_KEY, organizations, services, keys, ...scaling, ...backup, ...members, ...profile),
    completion,
  ],
};

/** The kubectl plugin: the commands that use a kubeconfig. */
export const KUBECTL_COMMANDS: ProgramSpec = {
  version,
  description:
    "Shows the progress of rescales, checks an installation of pipe-scaling-operator, and manages its records.",
  commands: [...kubeconfigCommands, kubectlCompletion],
  commonOptions: commandClusterSettings,
  isKubectlPlugin: true,
};
