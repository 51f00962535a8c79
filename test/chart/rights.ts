import type { Cluster } from "@pipe-scaling/local-cluster";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import type { KubeClient } from "../../src/kube/client.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { collectionPath, objectPath, type Resource } from "../../src/kube/paths.ts";
import {
  accountName,
  type Component,
  clusterRoleName,
  nodesRoleName,
  recordsRoleName,
} from "../support/fixtures/shipped-account.ts";
import { PatientClient } from "../support/patient-client.ts";

const RBAC = "rbac.authorization.k8s.io/v1";
const ROLES: Resource = { apiVersion: RBAC, plural: "roles" };
const CLUSTER_ROLES: Resource = { apiVersion: RBAC, plural: "clusterroles" };
const REVIEWS: Resource = { apiVersion: "authorization.k8s.io/v1", plural: "subjectaccessreviews" };

/** One verb on one resource. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  /** With the subresource, if there is one. */
  readonly resource: string;
  /** Name of the object, if the permission is limited to one. */
  readonly name?: string | undefined;
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

export interface Role extends KubeObject {
  readonly rules: readonly Rule[];
}

function rightsIn({ apiGroups, resources, resourceNames, verbs }: Rule): Right[] {
  const names: readonly (string | undefined)[] = resourceNames ?? [undefined];
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      names.flatMap((name) => verbs.map((verb) => ({ verb, group, resource, name }))),
    ),
  );
}

function ruleOf({ group, resource, name, verb }: Right): Rule {
  const names = name === undefined ? {} : { resourceNames: [name] };
  return { apiGroups: [group], resources: [resource], verbs: [verb], ...names };
}

/** `list configmaps`, `patch pipes.clouddb.dev/pipescalings/status` */
function nameOf({ verb, group, resource }: Right): string {
  return `${verb} ${group === "" ? "" : `${group}/`}${resource}`;
}

/** Returns all permissions of the roles, sorted. */
export function namesOfRights(roles: readonly Role[]): readonly string[] {
  return roles.flatMap(({ rules }) => rules.flatMap(rightsIn).map(nameOf)).toSorted();
}

/** Returns true if the user has the permission. */
export async function mayDo(
  admin: KubeClient,
  user: string,
  namespace: string,
  { verb, group, resource: path, name }: Right,
): Promise<boolean> {
  const [resource, subresource] = path.split("/");
  const { status } = await admin.json<{ readonly status: { readonly allowed: boolean } }>({
    method: "POST",
    path: collectionPath(REVIEWS, undefined),
    body: {
      apiVersion: REVIEWS.apiVersion,
      kind: "SubjectAccessReview",
      spec: { user, resourceAttributes: { namespace, verb, group, resource, subresource, name } },
    },
  });
  return status.allowed;
}

/** Returns the error of the API server for a missing permission. */
function refusalOf({ verb, group, resource }: Right): string {
  return `cannot ${verb} resource "${resource}" in API group "${group}"`;
}

/** Waits until the log contains a denied call. */
export async function waitForDenial(log: readonly object[], refusal: string): Promise<void> {
  const text = JSON.stringify(refusal).slice(1, -1);
  await waitFor(() => JSON.stringify(log).includes(text), { what: `the log to contain: ${refusal}` });
}

/** The cluster of a test, and the namespace of its records and accounts. */
interface Place {
  readonly cluster: Cluster;
  readonly records: string;
}

/** The permissions of an account of test/support/fixtures/shipped-account.ts, each of which can be removed temporarily. */
export class Rights {
  readonly #admin: KubeClient;
  readonly #namespace: string;
  readonly #user: string;
  /** Roles by their paths. */
  readonly #roles: ReadonlyMap<string, Role>;

  private constructor(admin: KubeClient, namespace: string, user: string, roles: ReadonlyMap<string, Role>) {
    this.#admin = admin;
    this.#namespace = namespace;
    this.#user = user;
    this.#roles = roles;
  }

  static async of(component: Component, { cluster, records }: Place): Promise<Rights> {
    const admin = await PatientClient.of(cluster);
    const roles = new Map<string, Role>();
    const clusterRoles = [
      clusterRoleName(component, records),
      ...(component === "controller" ? [nodesRoleName(records)] : []),
    ];
    for (const path of [
      objectPath(ROLES, records, recordsRoleName(component)),
      ...clusterRoles.map((name) => `${collectionPath(CLUSTER_ROLES, undefined)}/${name}`),
    ]) {
      roles.set(path, await admin.json<Role>({ path }));
    }
    const user = `system:serviceaccount:${records}:${accountName(component)}`;
    return new Rights(admin, records, user, roles);
  }

  get names(): readonly string[] {
    return namesOfRights([...this.#roles.values()]);
  }

  /**
   * Runs a function while one permission is missing.
   *
   * @param act receives the error of the API server for the missing permission
   */
  async without<T>(name: string, act: (refusal: string) => Promise<T>): Promise<T> {
    for (const [path, { rules }] of this.#roles) {
      const all = rules.flatMap(rightsIn);
      const missing = all.find((right) => nameOf(right) === name);
      if (!missing) continue;
      const others = all.filter((right) => right !== missing);
      await this.#give(path, others.map(ruleOf));
      await this.#isSeen(missing, false);
      try {
        return await act(refusalOf(missing));
      } finally {
        await this.#give(path, rules);
        await this.#isSeen(missing, true);
      }
    }
    throw new Error(`no role has the permission ${name}`);
  }

  close(): Promise<void> {
    return this.#admin.close();
  }

  async #give(path: string, rules: readonly Rule[]): Promise<void> {
    const patchType = "application/merge-patch+json";
    await this.#admin.json({ method: "PATCH", path, patchType, body: { rules } });
  }

  /** Waits until a change of a role takes effect in the API server. */
  async #isSeen(right: Right, isAllowed: boolean): Promise<void> {
    await waitFor(async () => (await mayDo(this.#admin, this.#user, this.#namespace, right)) === isAllowed, {
      what: `the permission ${nameOf(right)} to be ${isAllowed ? "granted" : "removed"}`,
      intervalMs: 10,
    });
  }
}
