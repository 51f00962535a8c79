import packageJson from "../../../package.json" with { type: "json" };
import { counted } from "../view/text.ts";
import type { Cluster } from "./cluster.ts";
import { COMPONENT_LABEL, type Component, type Installation, OF_PRODUCT } from "./installation.ts";
import { error, FORCED_UPGRADE, note, ok, type Result, warning } from "./result.ts";

const LOST: Readonly<Record<Component, string>> = {
  api: "sizes cannot be requested over HTTP",
  controller: "nothing is resized",
};

/** Checks that both processes are installed, ready, of this version, and not edited by hand. */
export async function checkInstallations(cluster: Cluster): Promise<Result[]> {
  const installations = await cluster.installations();
  if (installations.length === 0) {
    return [
      note(
        `No Deployment has the chart's labels (${OF_PRODUCT}), so pods and permissions were not checked.`,
        "Install the chart, unless both processes run outside this cluster.",
      ),
    ];
  }
  const ours = await cluster.ownInstallations();
  if (ours.length === 0) {
    const others = new Set(installations.map((each) => each.records));
    return [...others].map((namespace) =>
      error(
        `An installation uses the records in the namespace ${namespace}, not those in ${cluster.namespace}.`,
        `Check them with ${cluster.command("doctor", namespace)}`,
      ),
    );
  }
  return [
    ...(["api", "controller"] as const)
      .filter((component) => !ours.some((each) => each.component === component))
      .map((component) =>
        error(
          `The ${component} is not installed, so ${LOST[component]}.`,
          "Install the whole chart: helm upgrade --install",
        ),
      ),
    ...ours.map((each) => checkReadiness(cluster, each)),
    ...ours.flatMap((each) => reportEditors(cluster, each)),
    ...ours
      .filter(({ version = packageJson.version }) => version !== packageJson.version)
      .map(({ component, version }) =>
        warning(
          `The ${component} is version ${version}, but this program is version ${packageJson.version}, so the checks might not apply.`,
          `Use pipe-scaling ${version}. If the installation is the older one, you can upgrade it instead.`,
        ),
      ),
  ];
}

function checkReadiness(cluster: Cluster, installation: Installation): Result {
  const { component, namespace, name, ready, replicas, earlier, isStuck, isPaused } = installation;
  const pods = `${ready} of ${replicas} pods of ${namespace}/${name} are ready`;
  const selected = `--namespace ${namespace} --selector ${COMPONENT_LABEL}=${component}`;
  const describe = cluster.kubectl(`describe deployments,pods ${selected}`);
  // The log of a Deployment is that of one pod, and rather of one that is ready.
  const logs = cluster.kubectl(`logs ${selected} --prefix`);
  const commands = `\`${describe}\`, and \`${logs}\``;
  const findOut = `To find out why: ${commands}`;
  if (ready === 0 || ready < replicas) {
    const lost = ready === 0 ? `, so ${LOST[component]}` : "";
    return (ready === 0 ? error : warning)(`The ${component} is not ready: ${pods}${lost}.`, findOut);
  }
  if (earlier === 0 || isPaused) return ok(`The ${component} is ready: ${pods}.`);
  const left = `${namespace}/${name} has ${counted(earlier, "pod")} left with an earlier template, and only the newest template was checked.`;
  return isStuck
    ? error(`The rollout of the ${component} does not proceed: ${left}`, findOut)
    : warning(
        `A rollout of the ${component} is in progress: ${left}`,
        `Check again when it ends. If it does not: ${commands}`,
      );
}

/** Reports the changes of others than the installer, by their effect on upgrades. */
function reportEditors(cluster: Cluster, installation: Installation): Result[] {
  const { namespace, name, editors, sharers, isPaused } = installation;
  const what = `The Deployment ${namespace}/${name}`;
  const words = (verb: string) => cluster.kubectl(`${verb} deployment ${name} --namespace ${namespace}`);
  const paused = error(
    `${what} is paused, so no upgrade of it is rolled out.`,
    `Resume it: ${words("rollout resume")}`,
  );
  const edited = warning(
    `${what} was changed by ${editors.join(", ")}: the next helm upgrade or rollback may fail with a conflict, revert the change or keep it.`,
    `Set what is to stay in the values of the chart. An upgrade keeps what the chart does not set, so remove that yourself: \`${words("edit")}\`. Then: ${FORCED_UPGRADE}`,
  );
  const shared = note(
    `${what} has fields that both the chart and ${sharers.join(", ")} set, to the same value.`,
    `When you change one of them in the values of the chart: ${FORCED_UPGRADE}`,
  );
  return [
    ...(isPaused ? [paused] : []),
    ...(editors.length > 0 ? [edited] : []),
    ...(sharers.length > 0 ? [shared] : []),
  ];
}
