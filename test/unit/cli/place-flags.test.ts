import { expect, test } from "vitest";
import { clusterFlags, type Place, placeFlags } from "../../../src/cli/options.ts";

test.each<[string, Place, string]>([
  ["is empty for the current context and the default namespace", { namespace: "pipe-scaling-records" }, ""],
  [
    "selects the same kubeconfig, context and namespace",
    {
      kubeconfig: "/home/ada/.kube/prod.yaml",
      context: "arn:aws:eks:eu-1:1:cluster/prod",
      namespace: "acme",
    },
    " --kubeconfig /home/ada/.kube/prod.yaml --context arn:aws:eks:eu-1:1:cluster/prod --namespace acme",
  ],
  [
    "is quoted for a shell",
    { kubeconfig: "my files/ada's config", context: "$(prod)", namespace: "pipe-scaling-records" },
    " --kubeconfig 'my files/ada'\\''s config' --context '$(prod)'",
  ],
])("the end of a printed command %s", (_, place, flags) => {
  expect(placeFlags(place)).toBe(flags);
});

test("the end of a printed kubectl command selects the cluster, and leaves the namespace to the command", () => {
  expect(clusterFlags({ kubeconfig: "a", context: "prod" })).toBe(" --kubeconfig a --context prod");
});
