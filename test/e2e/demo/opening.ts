import { fileURLToPath } from "node:url";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { accounts, install, RECORDS_NAMESPACE } from "../../../deploy/chart/install.ts";
import { mayDo } from "./access-review.ts";
import { check } from "./check.ts";
import { ACME_PIPES, DATABASE_PIPES, GLOBEX_PIPES, LOAD_PIPE, OTHER_PIPE, pipe } from "./objects.ts";
import { isRolledOut, readyCondition } from "./observer.ts";
import { type Addresses, OwnProcess } from "./processes.ts";
import { type Seeded, seed } from "./seed.ts";
import type { Stage } from "./stage.ts";

const TIERS_FILE = fileURLToPath(new URL("tiers.yaml", import.meta.url));

/** Installs the CRD and the permissions. */
export function installStep({ cluster, narration, signal }: Stage): Promise<void> {
  return narration.step("Installing the PipeScaling resource and the accounts", async () => {
    await install(cluster, [ACME_PIPES, GLOBEX_PIPES], signal);
    const { api, controller } = await accounts(cluster);
    const [apiPatches, controllerReads] = await Promise.all([
      mayDo(api, { namespace: ACME_PIPES, verb: "patch", group: "apps", resource: "deployments" }, signal),
      mayDo(controller, { namespace: RECORDS_NAMESPACE, verb: "list", resource: "secrets" }, signal),
    ]);
    check(!apiPatches, "the service account of the API may patch Deployments, and should not");
    check(!controllerReads, "the service account of the controller may read Secrets, and should not");
    return {
      outcome: "The CRD of PipeScaling and a service account for each process are installed",
      details: ["the API cannot change Deployments, and the controller cannot read Secrets"],
      result: undefined,
    };
  });
}

export function seedStep({ cluster, narration, signal }: Stage): Promise<Seeded> {
  return narration.step("Seeding two organizations", async () => {
    const seeded = await seed(cluster, TIERS_FILE, signal);
    return {
      outcome:
        "Organization Acme Corp (tier basic) has a service, a member and an API key; Globex is another tenant",
      result: seeded,
    };
  });
}

/** Creates the database pipes of Acme, a pipe of another type, and a pipe of Globex. */
export function pipesStep({ cluster, observer, narration, signal }: Stage, seeded: Seeded): Promise<void> {
  const { acme, globex } = seeded;
  return narration.step("Starting the pipes", async () => {
    await apply(cluster, [
      ...DATABASE_PIPES.map((name) =>
        pipe({ name, namespace: ACME_PIPES, serviceId: acme.serviceId, type: "database" }),
      ),
      pipe({
        name: OTHER_PIPE,
        namespace: ACME_PIPES,
        serviceId: acme.serviceId,
        type: "object-storage",
      }),
      pipe({
        name: "postgres-ledger",
        namespace: GLOBEX_PIPES,
        serviceId: globex.serviceId,
        type: "database",
      }),
    ]);
    await waitFor(
      async () => {
        const pipes = [...(await observer.databasePipes()), await observer.pipe(OTHER_PIPE)];
        return pipes.every(isRolledOut);
      },
      { what: "all pipes of Acme to run", timeoutMs: 60_000, signal },
    );
    return {
      outcome: `${DATABASE_PIPES.length} database pipes of Acme run (${DATABASE_PIPES.join(", ")}), and ${OTHER_PIPE}, a pipe of another type`,
      details: [`${LOAD_PIPE} is a StatefulSet of three pods, the others are Deployments of two`],
      result: undefined,
    };
  });
}

export interface Running {
  readonly api: OwnProcess;
  readonly controller: OwnProcess;
  readonly baseUrl: string;
}

/** Starts both processes with the permissions of their accounts. @param started receives each process */
export function processesStep(
  { cluster, narration, signal }: Stage,
  started: (process: OwnProcess) => void,
): Promise<Running> {
  return narration.step("Starting the API and the controller", async () => {
    const kubeconfigs = await accounts(cluster);
    const start = (name: "api" | "controller", args: readonly string[]) => {
      const common = [
        ...["--kubeconfig", kubeconfigs[name], "--namespace", RECORDS_NAMESPACE],
        ...["--pipe-namespaces", `${ACME_PIPES},${GLOBEX_PIPES}`],
        ...["--tiers-file", TIERS_FILE, "--ops-port", "0"],
      ];
      const process = new OwnProcess(cluster, name, [...common, ...args]);
      started(process);
      return process;
    };
    const api = start("api", ["--port", "0"]);
    const controller = start("controller", []);
    const [{ url }]: [Addresses, Addresses] = await Promise.all([
      api.ready(signal),
      controller.ready(signal),
    ]);
    check(url !== undefined, "the API did not log its address");
    return {
      outcome: `The API listens on ${url}, the controller watches the pipes`,
      result: { api, controller, baseUrl: url },
    };
  });
}

/** Checks that the controller created the resource, and did not change pipes with the right size. */
export function adoptedStep(stage: Stage, { acme }: Seeded): Promise<void> {
  const { observer, narration, signal } = stage;
  return narration.step("Waiting for the resource of the service", async () => {
    const before = await observer.pods(ACME_PIPES, DATABASE_PIPES[0]);
    const scaling = await waitFor(
      async () => {
        const seen = await observer.scaling(acme.serviceId);
        return readyCondition(seen)?.status === "True" && seen;
      },
      { what: "the PipeScaling of the service to be created and ready", signal },
    );
    const pods = await observer.pods(ACME_PIPES, DATABASE_PIPES[0]);
    check(pods.join() === before.join(), "a pipe that already had the right size was restarted");
    const { desired, pipes } = scaling.status ?? {};
    const all = `${DATABASE_PIPES.length}/${DATABASE_PIPES.length}`;
    check(pipes?.summary === all, `the resource counts ${pipes?.summary} pipes instead of ${all}`);
    return {
      outcome: `The controller created the PipeScaling of the service: ${desired?.summary}, as its pipes have; no pipe restarted`,
      result: undefined,
    };
  });
}
