import { formatSize, type Size } from "../../domain/size.ts";
import type { DeploymentView } from "./deployment-view.ts";

/** A dry run of a resize. Rejections are recorded like those of writes. */
export interface Validation {
  readonly key: string;
  readonly isPending: boolean;
}

/** Identifies the subject of a validation: a generation of the Deployment, and a size. */
export function validationKey({ metadata }: DeploymentView, size: Size): string {
  return `${metadata.generation}/${formatSize(size)}`;
}
