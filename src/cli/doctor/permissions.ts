import { LEASE_NAME } from "../../controller/names.ts";
import { GROUP, PLURAL } from "../../crd/names.ts";
import { counted } from "../view/text.ts";
import type { Cluster } from "./cluster.ts";
import type { Component, Installation } from "./installation.ts";
import { error, FORCED_UPGRADE, note, ok, type Result } from "./result.ts";

/** Where a permission is needed: in the namespace of the records, where pipes are, or without a namespace. */
type Scope = "records" | "pipes" | "cluster";

/** A permission that a process needs. */
export interface Permission {
  readonly scope: Scope;
  readonly group: string;
  /** With its subresource, as in a Role: `pipescalings/status`. */
  readonly resource: string;
  readonly verbs: readonly string[];
  readonly name?: string;
  /** The values of the chart that grant it, if the process also works without it. */
  readonly optional?: readonly string[];
}

const LEASES = "coordination.k8s.io";
const IN_PLACE = "rbac.inPlaceResize";
const STATEFUL_SETS = "rbac.statefulSets";

/** The permissions that the chart grants; a test compares the two. */
export const PERMISSIONS: Readonly<Record<Component, readonly Permission[]>> = {
  api: [
    allow("records", "", "secrets", "list watch"),
    allow("records", "", "configmaps", "get list watch create patch"),
    allow("pipes", GROUP, PLURAL, "get list watch patch"),
  ],
  controller: [
    allow("records", "", "configmaps", "list watch"),
    allow("records", LEASES, "leases", "create"),
    allow("records", LEASES, "leases", "get update", { name: LEASE_NAME }),
    allow("cluster", "", "nodes", "list", { optional: ["rbac.nodes"] }),
    allow("pipes", "apps", "deployments", "list watch patch"),
    allow("pipes", "", "pods", "list watch"),
    allow("pipes", "autoscaling", "horizontalpodautoscalers", "list watch"),
    allow("pipes", "autoscaling.k8s.io", "verticalpodautoscalers", "list watch"),
    allow("pipes", GROUP, PLURAL, "get list watch create"),
    allow("pipes", GROUP, `${PLURAL}/status`, "patch"),
    allow("pipes", "events.k8s.io", "events", "create patch"),
    allow("pipes", "", "pods/resize", "patch", { optional: [IN_PLACE] }),
    allow("pipes", "apps", "replicasets", "list patch delete", { optional: [IN_PLACE] }),
    allow("pipes", "apps", "statefulsets", "list watch patch", { optional: [STATEFUL_SETS] }),
    allow("pipes", "", "pods", "delete", { optional: [STATEFUL_SETS] }),
    allow("pipes", "", "pods", "patch", { optional: [STATEFUL_SETS, IN_PLACE] }),
  ],
};

/** Both processes also need these permissions if requests for their metrics are authenticated. */
export const REVIEW_PERMISSIONS: readonly Permission[] = [
  allow("cluster", "authentication.k8s.io", "tokenreviews", "create"),
  allow("cluster", "authorization.k8s.io", "subjectaccessreviews", "create"),
];

function allow(
  scope: Scope,
  group: string,
  resource: string,
  verbs: string,
  more: Pick<Permission, "name" | "optional"> = {},
): Permission {
  return { scope, group, resource, verbs: verbs.split(" "), ...more };
}

/** Asks the API server whether the accounts of the processes have their permissions. */
export async function checkPermissions(cluster: Cluster): Promise<Result[]> {
  const ours = await cluster.ownInstallations();
  return (await Promise.all(ours.map((each) => checkAccount(cluster, each)))).flat();
}

async function checkAccount(cluster: Cluster, installation: Installation): Promise<Result[]> {
  const { component, namespace, account, records, reviewsTokens } = installation;
  const user = `system:serviceaccount:${namespace}:${account}`;
  const namespaces: Readonly<Record<Scope, readonly string[]>> = {
    records: [records],
    pipes: namespacesOf(installation),
    cluster: [""],
  };
  const subject = `The account of the ${component}, ${user},`;
  const needed = [...PERMISSIONS[component], ...(reviewsTokens ? REVIEW_PERMISSIONS : [])];
  const results = needed.map(async (permission) => {
    const where = namespaces[permission.scope];
    const account = { user, namespace };
    const denied = await Promise.all(where.map((each) => deniedVerbs(cluster, account, permission, each)));
    const byVerbs = Map.groupBy(where, (_, at) => denied[at]?.join(", ") ?? "");
    byVerbs.delete("");
    return [...byVerbs].map(([verbs, of]) => resultFor(subject, verbs, permission, of));
  });
  const denied = (await Promise.all(results)).flat();
  return denied.length === 0 ? [ok(`${subject} has all permissions that it needs.`)] : denied;
}

/** Maximum number of namespaces that a result names; hundreds can have the same problem. */
const MAX_NAMED = 3;

function resultFor(
  subject: string,
  verbs: string,
  permission: Permission,
  namespaces: readonly string[],
): Result {
  const { group, resource, optional } = permission;
  const kind = group === "" ? resource : `${resource} (${group})`;
  const others = namespaces.length - MAX_NAMED;
  const named = namespaces.slice(0, MAX_NAMED).join(", ") || "the whole cluster";
  const where = others > 0 ? `${named} and ${counted(others, "other namespace")}` : named;
  const message = `${subject} may not ${verbs} ${kind} in ${where}.`;
  if (optional !== undefined) {
    const values = optional.map((each) => `${each}=true`).join(" and ");
    return note(message, `Unless this is intended, set ${values}, then: ${FORCED_UPGRADE}`);
  }
  return error(
    message,
    `Grant the Roles of the installed release: ${FORCED_UPGRADE} with rbac.create=true, or its manifests. Until then the process retries.`,
  );
}

/** Returns true if the account of a process has this permission in at least one of its namespaces of pipes. */
export async function mayInPipes(
  cluster: Cluster,
  installation: Installation,
  [verb, group, resource]: readonly [verb: string, group: string, resource: string],
): Promise<boolean> {
  const { namespace, account } = installation;
  const user = { user: `system:serviceaccount:${namespace}:${account}`, namespace };
  const permission = allow("pipes", group, resource, verb);
  const denied = namespacesOf(installation).map((each) => deniedVerbs(cluster, user, permission, each));
  return (await Promise.all(denied)).some((verbs) => verbs.length === 0);
}

/** Returns the namespaces of pipes; an empty one stands for all. */
function namespacesOf({ pipeNamespaces }: Installation): readonly string[] {
  return pipeNamespaces.length === 0 ? [""] : pipeNamespaces;
}

async function deniedVerbs(
  { options: { client, signal } }: Cluster,
  account: { readonly user: string; readonly namespace: string },
  { group, resource: path, name, verbs }: Permission,
  namespace: string,
): Promise<string[]> {
  const [resource, subresource] = path.split("/");
  const accounts = "system:serviceaccounts";
  const groups = [accounts, `${accounts}:${account.namespace}`, "system:authenticated"];
  const denied = verbs.map(async (verb) => {
    const resourceAttributes = { group, resource, subresource, name, verb, namespace };
    const spec = { user: account.user, groups, resourceAttributes };
    const review: { readonly status?: { readonly allowed?: boolean } } = await client.json({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      body: { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec },
      signal,
    });
    return review.status?.allowed === true ? [] : [verb];
  });
  return (await Promise.all(denied)).flat();
}
