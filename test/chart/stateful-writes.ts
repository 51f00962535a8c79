import { LAST_ROLLOUT_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { formatLastRollout, type LastRollout } from "../../src/controller/observe/last-rollout.ts";
import { resourcesFor } from "../../src/controller/observe/resources.ts";
import { HOLD } from "../../src/controller/observe/workloads/stateful-set.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { aRollout } from "../support/fixtures/snapshot.ts";

export const UNLABEL = { metadata: { labels: { [SERVICE_LABEL]: null, [TYPE_LABEL]: null } } };

export const amounts = (cpu: string, memory: string, limits: object = {}) => ({
  requests: { cpu, memory },
  limits: { memory, ...limits },
});

/** The part of a spec with resources of a container. */
export const template = (resources: object, name = "pipe") => ({
  template: { spec: { containers: [{ name, resources }] } },
});
export const ofCores = (cores: number) => template(resourcesFor(sizeOfCores(cores), false));
export const resize = (cores: number) => ({ spec: ofCores(cores) });

/** The part of a spec with a partition. */
export const partition = (value: number | null) => ({
  updateStrategy: { rollingUpdate: { partition: value } },
});

/** The write that begins a commit, where the owner has this partition. */
export const hold = (cores: number, owners = 0) => ({
  spec: { ...ofCores(cores), ...partition(HOLD + owners) },
});

/** The write that ends a commit. */
export const release = (owners = 0) => ({ spec: partition(owners) });

/** The write that takes a commit back. */
export const releaseAndResize = (cores: number) => ({ spec: { ...ofCores(cores), ...partition(0) } });

export function annotationOf(uid: string, changed: Partial<LastRollout> = {}) {
  const rollout = aRollout(sizeOfCores(2), changed);
  return { metadata: { annotations: { [LAST_ROLLOUT_ANNOTATION]: formatLastRollout(rollout, uid) } } };
}
