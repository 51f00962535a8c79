import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { RECORDS_NAMESPACE } from "../../../deploy/chart/install.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";
import { organizationConfigMapName } from "../../../src/records/organization.ts";
import { check } from "./check.ts";
import type { ApiCaller } from "./http.ts";
import { expectRefusal } from "./refusals.ts";
import { expectEffective, scalingPath } from "./rescale.ts";
import { followRollout } from "./rollout.ts";
import type { Seeded } from "./seed.ts";
import type { Stage } from "./stage.ts";

const TWO_CORES = sizeOfCores(2);

/**
 * The platform team moves the organization to a tier with a maximum below the requested size. The controller resizes
 * the pipes; the requested size stays in the spec, for a larger tier later.
 */
export async function tierStep(stage: Stage, caller: ApiCaller, seeded: Seeded): Promise<void> {
  const { cluster, narration, signal } = stage;
  const { acme } = seeded;
  const configMap = organizationConfigMapName(acme.organizationId);
  await narration.step("Changing the tier", async () => {
    await kubectl(
      cluster,
      [
        ...["patch", "configmap", configMap, "--namespace", RECORDS_NAMESPACE],
        ...["--type=merge", "--patch", JSON.stringify({ data: { tier: "trial" } })],
      ],
      { signal },
    );
    return {
      outcome:
        "The platform team moves Acme Corp from tier basic to trial, with a maximum of 2 cpu (kubectl patch)",
      result: undefined,
    };
  });
  const { scaling, seconds } = await followRollout(stage, acme.serviceId, {
    size: TWO_CORES,
    reason: "TierLimited",
  });
  check(
    scaling.spec?.replicaCpuMillicores === 4000,
    "the requested size changed in the spec; only the pipes should follow the tier",
  );
  await narration.step("Checking the result", async () => {
    const reply = await expectEffective(caller, seeded, 2);
    return {
      outcome: `All pipes have 2 cpu and 8 Gi after ${seconds.toFixed(1)} s, and the resource has the reason`,
      details: [
        await kubectl(cluster, ["get", "psc", "-A"], { signal }),
        `GET …/pipesCdcScaling ${reply.text}`,
      ],
      result: undefined,
    };
  });
  await expectRefusal(narration, {
    outcome: "A size above what the tier allows",
    status: 400,
    by: caller,
    path: scalingPath(acme),
    body: { replicaCpuMillicores: 4000 },
  });
}
