import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { collectionPath, PODS } from "../../src/kube/paths.ts";
import type { Pod, TemplateContainer } from "../../src/kube/pods.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { injectedContainer, mutatingPolicy } from "../support/mutating-policy.ts";
import { TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";

const PROXY = "istio-proxy";

/** A pipe of one core, `pipe-a`, and a controller with the permissions and policies of the chart. */
export class InPlacePipe {
  readonly environment: TestEnvironment;

  private constructor(environment: TestEnvironment) {
    this.environment = environment;
  }

  static async create(): Promise<InPlacePipe> {
    const environment = await TestEnvironment.create();
    await restrictController(environment);
    return new InPlacePipe(environment);
  }

  /** Starts a pipe of one core and a controller. @returns the UIDs of its pods */
  async started(
    container: Partial<TemplateContainer>,
    podAnnotations: Readonly<Record<string, string>> = {},
    controller: Parameters<TestEnvironment["startController"]> = [{ resizeStrategy: "InPlaceOrRollout" }],
  ): Promise<readonly string[]> {
    const podLabels = { [SERVICE_LABEL]: this.environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    const identity = {
      name: "pipe-a",
      namespace: this.environment.pipes,
      serviceId: this.environment.serviceId,
    };
    const made = pipeDeployment({ ...identity, cores: 1, podLabels, podAnnotations });
    const containers = made.spec.template.spec.containers.map((each) => ({ ...each, ...container }));
    const template = { ...made.spec.template, spec: { ...made.spec.template.spec, containers } };
    await apply(this.environment.cluster, [{ ...made, spec: { ...made.spec, template } }]);
    await this.environment.startController(...controller);
    await this.environment.waitForCondition("Ready", "True");
    await waitFor(
      async () => (await this.pods()).every(({ status }) => status?.containerStatuses?.[0]?.resources),
      { what: "the pods to run" },
    );
    return this.uids();
  }

  async pods(): Promise<readonly Pod[]> {
    const { items } = await this.environment.client.json<{ readonly items: readonly Pod[] }>({
      path: collectionPath(PODS, this.environment.pipes),
    });
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  async uids(): Promise<readonly string[]> {
    return (await this.pods()).map(({ metadata }) => metadata.uid).sort();
  }

  /** Waits until the pipe waits for this reason. */
  waiting(reason: string) {
    const read = async () => {
      const { status } = await this.environment.scaling();
      return status?.pipes?.pending?.find((each) => each.state === "Waiting" && each.reason === reason);
    };
    return waitFor(read, { what: `the pipe to wait because of ${reason}` });
  }

  /** A service mesh, which adds a container to each pod. */
  async injectContainers(): Promise<void> {
    const { pipes, cluster, client } = this.environment;
    await apply(cluster, mutatingPolicy({ name: pipes, namespace: pipes, ...injectedContainer(PROXY) }));
    this.environment.onEnd(() =>
      kubectl(cluster, ["delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", pipes]),
    );
    const request = {
      method: "POST",
      path: collectionPath(PODS, pipes),
      query: { dryRun: "All" },
      body: { metadata: { name: "tried" }, spec: { containers: [{ name: "a", image: "a" }] } },
    } as const;
    await waitFor(async () => JSON.stringify(await client.json(request)).includes(PROXY), {
      what: "the API server to apply the policy",
    });
  }
}
