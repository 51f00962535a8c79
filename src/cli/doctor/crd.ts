import { isDeepStrictEqual } from "node:util";
import type { V1CustomResourceDefinition } from "@kubernetes/client-node";
import { crdManifest } from "../../crd/manifest.ts";
import { GROUP, PLURAL, VERSION } from "../../crd/names.ts";
import { isBeingDeleted, type KubeObject } from "../../kube/objects.ts";
import type { Cluster } from "./cluster.ts";
import { error, FORCED_UPGRADE, ok, type Result, warning } from "./result.ts";

const NAME = `${PLURAL}.${GROUP}`;

type Crd = KubeObject & Pick<V1CustomResourceDefinition, "spec" | "status">;

/** Compares the CRD in the cluster with that of this program. */
export async function checkCrd(cluster: Cluster): Promise<Result[]> {
  const crd = await cluster.get<Crd>(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${NAME}`);
  const install = installation(cluster);
  const missing = () => error(`There is no CustomResourceDefinition ${NAME}: nothing is resized.`, install);
  return [crd ? compare(cluster, crd, install) : missing()];
}

/** Without the flag, both commands fail if another field manager has changed the CRD. */
function installation(cluster: Cluster): string {
  const file = "crds/pipes.clouddb.dev_pipescalings.yaml";
  const apply = cluster.kubectl(`apply --server-side --force-conflicts -f ${file}`);
  return `${FORCED_UPGRADE}, or \`${apply}\` from the installed release.`;
}

function compare(cluster: Cluster, crd: Crd, install: string): Result {
  const established = crd.status?.conditions?.find(({ type }) => type === "Established");
  const isDeleted = isBeingDeleted(crd.metadata);
  if (isDeleted || established?.status !== "True") {
    const state = isDeleted ? "is being deleted with every PipeScaling" : "is not established";
    return error(
      `The CustomResourceDefinition ${NAME} ${state}: nothing is resized.`,
      `To find out why: \`${cluster.kubectl(`describe crd ${NAME}`)}\`; to install it again: ${install}`,
    );
  }
  const installed = crd.spec.versions.find(({ name }) => name === VERSION);
  if (!installed?.served) {
    return error(
      `The CustomResourceDefinition ${NAME} does not serve ${VERSION}.`,
      `Use the pipe-scaling of the installed release. If it reports this, too, restore the CRD: ${install}`,
    );
  }
  // The API server returns plain data, without `undefined`.
  const own: Crd = JSON.parse(JSON.stringify(crdManifest()));
  if (isDeepStrictEqual(essentialsOf(crd), essentialsOf(own))) {
    return ok(`The CRD of PipeScaling (${VERSION}) is that of this release.`);
  }
  return warning(
    `The CRD of PipeScaling (${VERSION}) in the cluster differs from that of this release: it was changed, or it belongs to another release.`,
    `Use the pipe-scaling of the installed release. If it reports this, too, restore the CRD: ${install}`,
  );
}

/** The parts by which the API server stores a PipeScaling: without its subresource, the status is a field like any other. */
function essentialsOf({ spec: { conversion, versions } }: Crd): object {
  const { schema, subresources } = versions.find(({ name }) => name === VERSION) ?? {};
  return { schema, subresources, conversion: conversion?.strategy ?? "None" };
}
