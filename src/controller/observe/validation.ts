import { formatSize, type Size } from "../../domain/size.ts";
import type { DeploymentView } from "./deployment-view.ts";

/** A dry run of a resize. Rejections are recorded like those of writes. */
export interface Validation {
  readonly key: string;
  readonly isPending: boolean;
}

/**
 * Identifies the subject of a validation: a pod template, a size, and everything else that the validation depends on.
 * The generation would also change with each annotation, and a webhook can be slower than a writer that repeatedly
 * annotates the Deployment.
 */
export function validationKey(pipe: DeploymentView, size: Size): string {
  const { revision, container, stopsOldPodsFirst } = pipe;
  const name = "problem" in container ? "" : container.name;
  return [revision, name, stopsOldPodsFirst, formatSize(size)].join("/");
}
