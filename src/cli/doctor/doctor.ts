import * as z from "zod";
import packageJson from "../../../package.json" with { type: "json" };
import { systemClock } from "../../runtime/clock.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { readTiers, tiersFileSetting } from "../../settings/tiers.ts";
import { withClient } from "../admin/with-client.ts";
import { defineCommand } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { EXIT_DONE, EXIT_UNHEALTHY } from "../exit-codes.ts";
import { printData } from "../output.ts";
import { examine } from "./examine.ts";
import { printFindings } from "./report.ts";

export const doctor = defineCommand({
  name: "doctor",
  summary: "look for what is wrong with the installation and its records",
  details:
    "Looks at the API server (version, time to answer, clock), the definition of PipeScaling, the two processes\n" +
    "with their permissions and the controller's lease, every record, and every PipeScaling and pipe. Each\n" +
    "finding comes with its remedy. Writes nothing. Ends with 3 if there is an error among them.\n\n" +
    "Sees what your kubeconfig may read; of the rest it says that it was not looked at. To see all, it takes\n" +
    "the rights to list Deployments, PipeScalings and autoscalers in all namespaces; ConfigMaps and Secrets in\n" +
    "the namespace of the records; to get Namespaces, CustomResourceDefinitions, the Lease and the ConfigMap\n" +
    "of the tiers; and to create subjectaccessreviews. An administrator of the cluster has them all.",
  examples: ["doctor", "doctor --tiers-file tiers.yaml", "doctor --output json"],
  options: z.object({ ...tiersFileSetting, ...outputOption, ...clusterSettings }),
  async run({ tiersFile, output, kubeconfig, namespace }, io) {
    const tiers = tiersFile === undefined ? undefined : new Set(readTiers(tiersFile).keys());
    const findings = await withClient(kubeconfig, (client) =>
      examine({
        client,
        clock: systemClock,
        signal: io.signal,
        records: namespace,
        tiers,
        ownVersion: packageJson.version,
      }),
    );
    if (output === "table") printFindings(io, findings);
    else printData(io, output, { findings: findings.all });
    return findings.count("error") > 0 ? EXIT_UNHEALTHY : EXIT_DONE;
  },
});
