import { LEASE_NAME } from "../../controller/names.ts";
import { GROUP, PLURAL } from "../../crd/names.ts";
import type { Installation } from "./installation.ts";
import type { Reader } from "./reader.ts";
import { error, note, type Result, warning } from "./result.ts";

/** A permission that a process needs. */
export interface Permission {
  readonly group: string;
  /** With its subresource, as in a Role: `pipescalings/status`. */
  readonly resource: string;
  readonly name?: string;
  readonly verbs: readonly string[];
  /** The consequence of its absence, as in "…, so …". */
  readonly without: string;
  /** The value of the chart that grants it, if the process also works without it. */
  readonly optional?: string;
}

function allow(group: string, resource: string, verbs: string, without: string, name?: string): Permission {
  return { group, resource, verbs: verbs.split(" "), without, ...(name === undefined ? {} : { name }) };
}

const LEASES = "coordination.k8s.io";
const NO_LEADER = "no controller becomes the leader";
const NOT_IN_PLACE = "pipes restart, although they should be resized in place";
const IN_PLACE_VALUE = "rbac.inPlaceResize";
const NO_START = "the controller does not start";

/** As the chart grants them; a test compares the two. */
export const PERMISSIONS = {
  api: {
    records: [
      allow("", "secrets", "list watch", "no key is known and every request is rejected"),
      allow(
        "",
        "configmaps",
        "get list watch create patch",
        "organizations, services, members and backup settings cannot be read or changed",
      ),
    ],
    cluster: [],
    pipes: [allow(GROUP, PLURAL, "get list watch patch", "no size can be read or requested")],
    inPlace: [],
  },
  controller: {
    records: [
      allow("", "configmaps", "list watch", "no service and no tier is known and nothing is resized"),
      allow(LEASES, "leases", "create", NO_LEADER),
      allow(LEASES, "leases", "get update", NO_LEADER, LEASE_NAME),
    ],
    cluster: [
      {
        ...allow(
          "",
          "nodes",
          "list",
          "a size that fits no node is known only when a pipe whose rollout stops old pods first has lost its pod",
        ),
        optional: "rbac.nodes",
      },
    ],
    pipes: [
      allow("apps", "deployments", "list watch patch", "pipes cannot be seen or resized"),
      allow("", "pods", "list watch", NO_START),
      allow("autoscaling", "horizontalpodautoscalers", "list watch", NO_START),
      allow("autoscaling.k8s.io", "verticalpodautoscalers", "list watch", `${NO_START} in clusters with VPA`),
      allow(GROUP, PLURAL, "get list watch create", "no desired size is known and nothing is resized"),
      allow(GROUP, `${PLURAL}/status`, "patch", "the progress of a rescale is not reported"),
      allow("events.k8s.io", "events", "create patch", "failures are not reported as Events"),
    ],
    inPlace: [
      { ...allow("", "pods/resize", "patch", NOT_IN_PLACE), optional: IN_PLACE_VALUE },
      { ...allow("apps", "replicasets", "list watch patch delete", NOT_IN_PLACE), optional: IN_PLACE_VALUE },
    ],
  },
} as const satisfies Record<string, Permissions>;

interface Permissions {
  readonly records: readonly Permission[];
  /** For objects without a namespace. */
  readonly cluster: readonly Permission[];
  readonly pipes: readonly Permission[];
  /** Where pipes are, and needed only to resize them in place. */
  readonly inPlace: readonly Permission[];
}

export type Component = keyof typeof PERMISSIONS;

interface Claim extends Permission {
  /** Empty for all. */
  readonly namespace: string;
}

/** Asks the API server whether the account of a process has its permissions; `undefined` if you may not ask. */
export function checkPermissions(reader: Reader, installation: Installation): Promise<Result[] | undefined> {
  const { component, records } = installation;
  const permissions: Permissions = PERMISSIONS[component];
  return checkScopes(reader, installation, [
    { needed: permissions.records, namespaces: [records] },
    { needed: permissions.cluster, namespaces: [""] },
    { needed: permissions.pipes, namespaces: pipeNamespacesOf(installation) },
  ]);
}

/** The same for the permissions with which a controller resizes pipes in place. */
export async function checkInPlacePermissions(
  reader: Reader,
  installation: Installation,
): Promise<Result[] | undefined> {
  const needed = PERMISSIONS[installation.component].inPlace;
  const results = await checkScopes(reader, installation, [
    { needed, namespaces: pipeNamespacesOf(installation) },
  ]);
  return results?.map(({ message, remedy }) => warning(message, remedy ?? ""));
}

function pipeNamespacesOf({ pipeNamespaces }: Installation): readonly string[] {
  return pipeNamespaces.length === 0 ? [""] : pipeNamespaces;
}

function checkScopes(
  reader: Reader,
  installation: Installation,
  scopes: readonly { readonly needed: readonly Permission[]; readonly namespaces: readonly string[] }[],
): Promise<Result[] | undefined> {
  const claims = scopes.flatMap(({ needed, namespaces }) =>
    namespaces.flatMap((namespace) => needed.map((permission): Claim => ({ ...permission, namespace }))),
  );
  return reader.allowed(
    "permissions",
    "check the permissions of others (create subjectaccessreviews)",
    Promise.all(claims.map((claim) => checkClaim(reader, installation, claim))).then((all) => all.flat()),
  );
}

export function userOf({ account, namespace }: Pick<Installation, "account" | "namespace">): string {
  return `system:serviceaccount:${namespace}:${account}`;
}

async function checkClaim(reader: Reader, installation: Installation, claim: Claim): Promise<Result[]> {
  const { group, resource, verbs, without, optional, namespace } = claim;
  const allowed = await Promise.all(verbs.map((verb) => isAllowed(reader, installation, claim, verb)));
  const denied = verbs.filter((_, at) => !allowed[at]);
  if (denied.length === 0) return [];
  const [name, subresource] = resource.split("/");
  const kind = `${name}${group === "" ? "" : `.${group}`}${subresource ? `/${subresource}` : ""}`;
  const where = namespace === "" ? "in all namespaces" : `in ${namespace}`;
  const account = `The account of the ${installation.component}, ${userOf(installation)},`;
  const message = `${account} may not ${denied.join(", ")} ${kind} ${where}, so ${without}.`;
  if (optional !== undefined) {
    return [note(message, `Unless this is intended: helm upgrade with ${optional}=true.`)];
  }
  return [
    error(
      message,
      "Grant the Roles of the installed release: helm upgrade with rbac.create=true, or its manifests. Until then the process retries.",
    ),
  ];
}

async function isAllowed(
  { client, signal }: Reader,
  installation: Installation,
  claim: Claim,
  verb: string,
): Promise<boolean> {
  const { group, name, namespace } = claim;
  const [resource, subresource] = claim.resource.split("/");
  const accounts = "system:serviceaccounts";
  const spec = {
    user: userOf(installation),
    groups: [accounts, `${accounts}:${installation.namespace}`, "system:authenticated"],
    resourceAttributes: { group, resource, subresource, name, verb, namespace },
  };
  const review: { readonly status?: { readonly allowed?: boolean } } = await client.json({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    body: { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec },
    signal,
  });
  return review.status?.allowed === true;
}
