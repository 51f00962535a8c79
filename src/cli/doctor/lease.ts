import { LEASE_NAME } from "../../controller/names.ts";
import type { KubeObject, Lease } from "../../kube/objects.ts";
import { PODS } from "../../kube/paths.ts";
import { MAX_LEASE_MS } from "../../runtime/leader.ts";
import { roughly } from "../view/time.ts";
import type { Cluster } from "./cluster.ts";
import { COMPONENT_LABEL, OF_PRODUCT } from "./installation.ts";
import { MAX_SKEW_MS } from "./max-skew.ts";
import { error, ok, type Result } from "./result.ts";

/** The admission policy of the chart has the same limit. */
const MAX_LEASE_S = MAX_LEASE_MS / 1000;

/** Checks that a controller is the leader, and that the Lease is one that a controller writes. */
export async function checkLease(cluster: Cluster): Promise<Result[]> {
  return [judge(cluster, await cluster.lease())];
}

function judge(cluster: Cluster, lease: Lease | undefined): Result {
  const { holderIdentity = "", renewTime, leaseDurationSeconds = 15 } = lease?.spec ?? {};
  const agoMs = cluster.options.clock.now() - Date.parse(renewTime ?? "");
  const what = `The Lease ${LEASE_NAME} in ${cluster.namespace}`;
  const isLost = (state: string) =>
    error(
      `${what} ${state}, so no controller is running for these records and nothing is resized.`,
      `To find out why: ${cluster.kubectl(`get pods --all-namespaces --selector ${OF_PRODUCT}`)}`,
    );
  if (!lease) return isLost("does not exist");
  if (holderIdentity === "") return isLost("has no holder");
  if (leaseDurationSeconds > MAX_LEASE_S) {
    return error(
      `${what} has a duration of ${roughly(leaseDurationSeconds * 1000)}, but a controller sets at most ${MAX_LEASE_S} s. So its holder, ${holderIdentity}, is not a controller.`,
      deletion(cluster),
    );
  }
  if (agoMs < -MAX_SKEW_MS) {
    return error(
      `${what} has a renewal time that is ${roughly(-agoMs)} in the future. Either the clock of a node is wrong, or its holder, ${holderIdentity}, is not a controller.`,
      `Correct the clock that is wrong. If all clocks are right: ${deletion(cluster)}`,
    );
  }
  if (agoMs <= 2000 * leaseDurationSeconds) {
    return ok(`The controller ${holderIdentity} is the leader; it renewed its lease ${roughly(agoMs)} ago.`);
  }
  const age = Number.isNaN(agoMs) ? "was never renewed" : `was last renewed ${roughly(agoMs)} ago`;
  return isLost(`${age} according to the clock of the API server`);
}

/** Checks that the holder of the Lease is a pod of the controller. Needs a ready pod, and the default identity. */
export async function checkHolder(cluster: Cluster): Promise<Result[]> {
  const controller = await cluster.controller();
  const { holderIdentity = "" } = (await cluster.lease())?.spec ?? {};
  if (!controller?.isNamedAfterPod || controller.ready === 0 || holderIdentity === "") return [];
  const { namespace, name } = controller;
  const query = { labelSelector: `${COMPONENT_LABEL}=controller` };
  const pods = await cluster.list({ resource: PODS, namespace, query });
  if (pods.some(({ metadata }) => isIdentityOf(holderIdentity, metadata))) return [];
  return [
    error(
      `The holder of the Lease ${LEASE_NAME} in ${cluster.namespace}, ${holderIdentity}, is not a pod of ${namespace}/${name}. Either another installation uses the same records, or a pod was just lost, or someone else has the token of the controller. As long as it renews the Lease, the pods of ${name} resize nothing.`,
      `Stop the other controller, or give it its own namespace of records. If there is none: ${deletion(cluster)}`,
    ),
  ];
}

/** The identity is the host name and random characters. The host name is the name of the pod, cut at 63 characters. */
function isIdentityOf(holder: string, { name }: KubeObject["metadata"]): boolean {
  const hostName = name.slice(0, 63).replace(/[-.]+$/, "");
  return holder.startsWith(`${hostName}-`) && /^[0-9a-f]{8}$/.test(holder.slice(hostName.length + 1));
}

function deletion(cluster: Cluster): string {
  const command = cluster.kubectl(`delete lease ${LEASE_NAME} --namespace ${cluster.namespace}`);
  return `\`${command}\`; a controller becomes the leader within seconds. If the error comes back, someone else has the token of the controller: replace its service account.`;
}
