import { type Finding, okUnless } from "./finding.ts";
import type { Installation } from "./installation.ts";
import type { Reader } from "./reader.ts";
import { RIGHTS, type Right } from "./rights.ts";

interface Review {
  readonly status?: { readonly allowed?: boolean };
}

/** A right, and where an account is to have it. */
interface Claim {
  readonly right: Right;
  /** Empty for all. */
  readonly namespace: string;
}

/** Asks the API server of each right that an installed process needs whether its account has it. */
export async function examinePermissions(
  reader: Reader,
  { component, account, namespace, records, pipeNamespaces }: Installation,
): Promise<Finding[]> {
  const rights = RIGHTS[component];
  const everywhere = pipeNamespaces.length === 0 ? [""] : pipeNamespaces;
  const claims = [
    ...rights.records.map((right): Claim => ({ right, namespace: records })),
    ...rights.cluster.map((right): Claim => ({ right, namespace: "" })),
    ...everywhere.flatMap((where) => rights.pipes.map((right): Claim => ({ right, namespace: where }))),
  ];
  const user = `system:serviceaccount:${namespace}:${account}`;
  const refused = await reader.allowed(
    "permissions",
    "ask for the rights of others (create subjectaccessreviews)",
    Promise.all(claims.map((claim) => refusedVerbs(reader, user, claim))),
  );
  if (!refused) return [];
  const found = claims.flatMap((claim, at): Finding[] => {
    const verbs = refused[at] ?? [];
    return verbs.length === 0 ? [] : [missing(component, user, claim, verbs)];
  });
  const well = `The account of the ${component}, ${user}, has all rights that it needs.`;
  return [...found, ...okUnless(found, "permissions", well)];
}

async function refusedVerbs(reader: Reader, user: string, claim: Claim): Promise<readonly string[]> {
  const { verbs } = claim.right;
  const answers = await Promise.all(verbs.map((verb) => isAllowed(reader, user, claim, verb)));
  return verbs.filter((_, at) => !answers[at]);
}

async function isAllowed(
  { client, signal }: Reader,
  user: string,
  { right, namespace }: Claim,
  verb: string,
): Promise<boolean> {
  const { group, resource, subresource, name } = right;
  const review: Review = await client.json({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      spec: {
        user,
        groups: [
          "system:serviceaccounts",
          `system:serviceaccounts:${user.split(":")[2]}`,
          "system:authenticated",
        ],
        resourceAttributes: { group, resource, subresource, name, verb, namespace },
      },
    },
    signal,
  });
  return review.status?.allowed === true;
}

function missing(
  component: string,
  user: string,
  { right: { group, resource, subresource, optional, without }, namespace }: Claim,
  verbs: readonly string[],
): Finding {
  const kind = `${resource}${group === "" ? "" : `.${group}`}${subresource ? `/${subresource}` : ""}`;
  const where = namespace === "" ? "in all namespaces" : `in ${namespace}`;
  const message = `The account of the ${component}, ${user}, may not ${verbs.join(", ")} ${kind} ${where}, so ${without}.`;
  const check = "permissions";
  if (optional !== undefined)
    return {
      severity: "note",
      check,
      message,
      remedy: `Unless that is on purpose: helm upgrade with ${optional}=true.`,
    };
  return {
    severity: "error",
    check,
    message,
    remedy:
      "Give it the Roles of the release that is installed: helm upgrade with rbac.create=true, or its manifests. Until then the process tries again.",
  };
}
