import { formatSize, type Size } from "../../domain/size.ts";
import type { DeploymentView } from "./deployment-view.ts";

/** A dry run of a resize. Refusals are recorded as those of writes are. */
export interface Validation {
  readonly key: string;
  readonly isPending: boolean;
}

/** What a validation is about: a size, and a generation of the Deployment. */
export function validationKey({ metadata }: DeploymentView, size: Size): string {
  return `${metadata.generation}/${formatSize(size)}`;
}
