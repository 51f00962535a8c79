/** A kind of object, as named in the paths of the API server. */
export interface Resource {
  /** `v1` for the core group, else `group/version`. */
  readonly apiVersion: string;
  readonly plural: string;
}

export const CONFIG_MAPS: Resource = { apiVersion: "v1", plural: "configmaps" };
export const SECRETS: Resource = { apiVersion: "v1", plural: "secrets" };
export const DEPLOYMENTS: Resource = { apiVersion: "apps/v1", plural: "deployments" };
export const NODES: Resource = { apiVersion: "v1", plural: "nodes" };
export const PODS: Resource = { apiVersion: "v1", plural: "pods" };
export const EVENTS: Resource = { apiVersion: "events.k8s.io/v1", plural: "events" };
export const LEASES: Resource = { apiVersion: "coordination.k8s.io/v1", plural: "leases" };

/** Returns the path of a collection, in all namespaces if none is given. */
export function collectionPath(resource: Resource, namespace: string | undefined): string {
  const root = resource.apiVersion.includes("/")
    ? `/apis/${resource.apiVersion}`
    : `/api/${resource.apiVersion}`;
  const scope = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}${scope}/${resource.plural}`;
}

export function objectPath(resource: Resource, namespace: string, name: string): string {
  return `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
}
