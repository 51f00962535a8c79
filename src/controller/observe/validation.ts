import { formatSize, type Size } from "../../domain/size.ts";
import type { DeploymentView } from "./deployment-view.ts";

/** A dry run of a resize. Rejections are recorded like those of writes. */
export interface Validation {
  readonly key: string;
  readonly isPending: boolean;
}

/**
 * Identifies the subject of a validation: a pod template, and a size. The generation would also change with each
 * annotation, and a webhook can be slower than a writer that repeatedly annotates the Deployment.
 */
export function validationKey({ revision }: DeploymentView, size: Size): string {
  return `${revision}/${formatSize(size)}`;
}
