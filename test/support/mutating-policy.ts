interface MutatedRequests {
  /** The name of both objects. */
  readonly name: string;
  /** Only requests in this namespace are changed. */
  readonly namespace: string;
  readonly group?: string;
  readonly resource?: string;
  readonly operation?: string;
  /** CEL; other requests are not changed. */
  readonly condition?: string;
  readonly mutation: object;
}

/** A MutatingAdmissionPolicy and its binding: like a webhook, without a server. By default, it changes new pods. */
export function mutatingPolicy(requests: MutatedRequests): readonly [policy: object, binding: object] {
  const { name, namespace, group = "", resource = "pods", operation = "CREATE" } = requests;
  const { condition = "true", mutation } = requests;
  const apiVersion = "admissionregistration.k8s.io/v1";
  const policy = {
    apiVersion,
    kind: "MutatingAdmissionPolicy",
    metadata: { name },
    spec: {
      failurePolicy: "Fail",
      reinvocationPolicy: "Never",
      matchConstraints: {
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        resourceRules: [
          { apiGroups: [group], apiVersions: ["*"], resources: [resource], operations: [operation] },
        ],
      },
      matchConditions: [{ name: "condition", expression: condition }],
      mutations: [mutation],
    },
  };
  const binding = { ...policy, kind: "MutatingAdmissionPolicyBinding", spec: { policyName: name } };
  return [policy, binding];
}

/** Adds a container to new pods, like a service mesh. */
export function injectedContainer(name: string): Pick<MutatedRequests, "condition" | "mutation"> {
  const container = `Object.spec.containers{name: "${name}", image: "registry.example/${name}:1"}`;
  return {
    // Several policies of a namespace may add it.
    condition: `object.spec.containers.all(each, each.name != "${name}")`,
    mutation: {
      patchType: "JSONPatch",
      jsonPatch: { expression: `[JSONPatch{op: "add", path: "/spec/containers/-", value: ${container}}]` },
    },
  };
}

/** The label and the annotation that `taggedObjects` adds. */
export const TAG = "example.com/cost-center";

/** Labels and annotates every object that is created or updated, as some organizations do. */
export function taggedObjects(): Omit<MutatedRequests, "name" | "namespace"> {
  const added = (key: string) => {
    const path = `/metadata/${key}`;
    const whole = `[JSONPatch{op: "add", path: "${path}", value: {"${TAG}": "a"}}]`;
    const one = `[JSONPatch{op: "add", path: "${path}/${TAG.replace("/", "~1")}", value: "a"}]`;
    return `(has(object.metadata.${key}) ? ${one} : ${whole})`;
  };
  return {
    group: "*",
    resource: "*/*",
    operation: "*",
    condition: "request.operation in ['CREATE', 'UPDATE']",
    mutation: {
      patchType: "JSONPatch",
      jsonPatch: { expression: `${added("labels")} + ${added("annotations")}` },
    },
  };
}
