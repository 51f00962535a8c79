import { isDeepStrictEqual } from "node:util";
import type {
  V1CustomResourceDefinitionSpec,
  V1CustomResourceDefinitionStatus,
} from "@kubernetes/client-node";
import { crdManifest } from "../../crd/manifest.ts";
import { GROUP, PLURAL, VERSION } from "../../crd/names.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { error, ok, type Result, warning } from "./result.ts";

const NAME = `${PLURAL}.${GROUP}`;
export const CRD_PATH = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${NAME}`;

const INSTALL =
  "kubectl apply --server-side -f crds/pipes.clouddb.dev_pipescalings.yaml, from the installed release (helm upgrade does it, too).";

export interface Crd extends KubeObject {
  readonly spec: Pick<V1CustomResourceDefinitionSpec, "versions">;
  readonly status?: V1CustomResourceDefinitionStatus;
}

/** Compares the CRD in the cluster with that of this program. */
export function checkCrd(crd: Crd | undefined): Result {
  if (!crd) return error(`There is no CustomResourceDefinition ${NAME}: nothing is resized.`, INSTALL);
  if (crd.metadata.deletionTimestamp !== undefined) {
    return error(
      `The CustomResourceDefinition ${NAME} is being deleted with every PipeScaling: all pipes keep their size.`,
      `When it is gone, install it again; the controller creates the PipeScalings with the sizes of the pipes: ${INSTALL}`,
    );
  }
  const established = crd.status?.conditions?.find(({ type }) => type === "Established");
  if (established?.status !== "True") {
    const why = established?.message ? `: ${established.message}` : "";
    return error(
      `The CustomResourceDefinition ${NAME} is not established${why}.`,
      `kubectl describe crd ${NAME}`,
    );
  }
  const installed = crd.spec.versions.find(({ name }) => name === VERSION);
  if (!installed?.served) {
    const served = crd.spec.versions.filter((each) => each.served).map(({ name }) => name);
    return error(
      `The CustomResourceDefinition ${NAME} does not serve ${VERSION}, only ${served.join(", ") || "no version"}.`,
      `Use the pipe-scaling of the installed release, or install the CRD of this one: ${INSTALL}`,
    );
  }
  // As the API server returns it: plain data.
  const own: Crd = JSON.parse(JSON.stringify(crdManifest()));
  if (isDeepStrictEqual(installed.schema, own.spec.versions[0]?.schema)) {
    return ok(`The CRD of PipeScaling is that of this release (${VERSION}).`);
  }
  return warning(
    "The CRD of PipeScaling in the cluster differs from that of this program: it was changed, or is of another release.",
    `Use the pipe-scaling of the installed release. If it reports this, too, restore the CRD: ${INSTALL}`,
  );
}
