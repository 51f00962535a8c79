import { expect, test } from "vitest";
import { kubectlCommand, type Place, programCommand } from "../../../src/cli/options.ts";

const PLACE = { program: "kubectl pipes", namespace: "acme" };

test.each<[string, Omit<Place, "program" | "namespace">, string]>([
  ["uses the current context if none was specified", {}, ""],
  [
    "selects the same kubeconfig and context",
    { kubeconfig: "/home/ada/.kube/prod.yaml", context: "arn:aws:eks:eu-1:1:cluster/prod" },
    " --kubeconfig /home/ada/.kube/prod.yaml --context arn:aws:eks:eu-1:1:cluster/prod",
  ],
  [
    "is quoted for a shell",
    { kubeconfig: "my files/ada's config", context: "$(prod)" },
    " --kubeconfig 'my files/ada'\\''s config' --context '$(prod)'",
  ],
])("a printed command %s", (_, cluster, flags) => {
  const place = { ...PLACE, ...cluster };
  expect(programCommand(place, "doctor")).toBe(`kubectl pipes doctor${flags} --namespace acme`);
  expect(kubectlCommand(place, "get pods")).toBe(`kubectl get pods${flags}`);
});

test("a printed command names the default namespace too, because PIPE_SCALING_NAMESPACE may name another", () => {
  const place = { program: "pipe-scaling", namespace: "pipe-scaling-records" };
  expect(programCommand(place, "doctor")).toBe("pipe-scaling doctor --namespace pipe-scaling-records");
});
