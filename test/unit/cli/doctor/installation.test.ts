import { expect, it } from "vitest";
import { installationOf, type ProcessDeployment } from "../../../../src/cli/doctor/installation.ts";

/** The Deployment of a controller for all namespaces, with these containers beside the process. */
function deployment(...others: readonly { name: string; env: { name: string; value: string }[] }[]) {
  const labels = {
    "app.kubernetes.io/component": "controller",
    "app.kubernetes.io/part-of": "pipe-scaling-operator",
  };
  const env = [{ name: "PIPE_SCALING_NAMESPACE", value: "records" }];
  const spec = { containers: [...others, { name: "controller", env }] };
  return {
    metadata: { name: "controller", namespace: "system", uid: "1", resourceVersion: "1", labels },
    spec: { selector: {}, template: { metadata: { labels }, spec } },
  } satisfies ProcessDeployment;
}

it("an installation has the settings of its process, not those of an extra container", () => {
  const env = [
    { name: "PIPE_SCALING_NAMESPACE", value: "others" },
    { name: "PIPE_SCALING_PIPE_NAMESPACES", value: "others" },
  ];
  expect(installationOf(deployment({ name: "proxy", env }))).toEqual(installationOf(deployment()));
  expect(installationOf(deployment())).toMatchObject({ records: "records", pipeNamespaces: [] });
});
