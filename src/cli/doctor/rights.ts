import { LEASE_NAME } from "../../controller/names.ts";
import { GROUP, PLURAL } from "../../crd/names.ts";

/** A right that one of the processes needs. */
export interface Right {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly verbs: readonly string[];
  /** The value of the chart that grants it, if the process also works without it. */
  readonly optional?: string;
  /** What does not work without it, as it reads in "…, so …". */
  readonly without: string;
}

export interface Rights {
  /** In the namespace of the records. */
  readonly records: readonly Right[];
  /** Where pipes run. */
  readonly pipes: readonly Right[];
  /** In the cluster, of what is in no namespace. */
  readonly cluster: readonly Right[];
}

export type Component = "api" | "controller";

/** As the chart grants them; a test holds the two against each other. */
export const RIGHTS: Readonly<Record<Component, Rights>> = {
  api: {
    records: [
      {
        group: "",
        resource: "secrets",
        verbs: ["list", "watch"],
        without: "no key is known and every request is refused",
      },
      {
        group: "",
        resource: "configmaps",
        verbs: ["get", "list", "watch", "create", "patch"],
        without: "organizations, services, members and backup settings cannot be read or changed",
      },
    ],
    pipes: [
      {
        group: GROUP,
        resource: PLURAL,
        verbs: ["get", "list", "watch", "patch"],
        without: "no size can be read or asked for",
      },
    ],
    cluster: [],
  },
  controller: {
    records: [
      {
        group: "",
        resource: "configmaps",
        verbs: ["list", "watch"],
        without: "no service and no tier is known and nothing is resized",
      },
      {
        group: "coordination.k8s.io",
        resource: "leases",
        verbs: ["create"],
        without: "no controller can begin its work",
      },
      {
        group: "coordination.k8s.io",
        resource: "leases",
        name: LEASE_NAME,
        verbs: ["get", "update"],
        without: "no controller can begin its work",
      },
    ],
    pipes: [
      {
        group: "apps",
        resource: "deployments",
        verbs: ["list", "watch", "patch"],
        without: "pipes cannot be seen or resized",
      },
      { group: "", resource: "pods", verbs: ["list", "watch"], without: "the controller does not start" },
      {
        group: "autoscaling",
        resource: "horizontalpodautoscalers",
        verbs: ["list", "watch"],
        without: "the controller does not start",
      },
      {
        group: "autoscaling.k8s.io",
        resource: "verticalpodautoscalers",
        verbs: ["list", "watch"],
        without: "the controller does not start where the cluster knows them",
      },
      {
        group: GROUP,
        resource: PLURAL,
        verbs: ["get", "list", "watch", "create"],
        without: "no wanted size is known and nothing is resized",
      },
      {
        group: GROUP,
        resource: PLURAL,
        subresource: "status",
        verbs: ["patch"],
        without: "nobody sees how far a rescale is",
      },
      {
        group: "events.k8s.io",
        resource: "events",
        verbs: ["create", "patch"],
        without: "no Event tells of failures",
      },
    ],
    cluster: [
      {
        group: "",
        resource: "nodes",
        verbs: ["list"],
        optional: "rbac.nodes",
        without:
          "a size that fits no node is known only when a pipe whose rollout stops old pods first has lost its pod",
      },
    ],
  },
};
