import { describe, expect, it } from "vitest";
import { checkNamespaces } from "../../../../src/cli/doctor/references.ts";
import { organizationRecord, serviceRecord } from "../../../support/fixtures/records.ts";
import { clusterWith } from "./fake-reads.ts";

const ID = "11111111-1111-4111-8111-111111111111";

/** The results for a service in the namespace `pipes`. */
function check(...namespaces: readonly (readonly [name: string, deletionTimestamp?: string])[]) {
  const listOf = (...items: readonly object[]) => ({ metadata: {}, items });
  const organization = organizationRecord({ id: ID });
  const service = serviceRecord({ id: ID, name: "orders", organizationId: ID, namespace: "pipes" });
  return checkNamespaces(
    clusterWith({
      "/api/v1/namespaces": listOf(
        ...namespaces.map(([name, deletionTimestamp]) => ({ metadata: { name, deletionTimestamp } })),
      ),
      "/api/v1/namespaces/records/configmaps": listOf(organization, service),
      "/apis/apps/v1/deployments": listOf(),
    }),
  );
}

const DELETED = "2026-05-01T00:00:00Z";
const SERVICE = `The pipes of the service orders (${ID}) belong in the namespace pipes, which`;
const CREATION = "`kubectl create namespace pipes`, or name another one: kubectl edit configmap ";

describe("the namespaces check of doctor", () => {
  it("accepts namespaces that exist", async () => {
    expect(await check(["records"], ["pipes"], ["others", DELETED])).toEqual([]);
  });

  it("reports a namespace of pipes that does not exist, or is being deleted", async () => {
    expect(await check(["records"])).toEqual([
      {
        severity: "error",
        message: `${SERVICE} does not exist.`,
        remedy: expect.stringMatching(`^${CREATION}`),
      },
    ]);
    expect(await check(["records"], ["pipes", DELETED])).toEqual([
      {
        severity: "error",
        message: `${SERVICE} is being deleted with everything in it.`,
        remedy: expect.stringMatching(
          `^\`kubectl describe namespace pipes\` shows what keeps it; wait until it is gone. ${CREATION}`,
        ),
      },
    ]);
  });

  it("reports that the namespace of the records does not exist, or is being deleted", async () => {
    const creation =
      "Specify another one with --namespace, or create it with the first organization: pipe-scaling admin organization create --create-namespace ";
    expect(await check(["pipes"])).toEqual([
      {
        severity: "error",
        message: "The namespace records of the records does not exist.",
        remedy: expect.stringMatching(`^${creation}`),
      },
    ]);
    expect(await check(["records", DELETED], ["pipes"])).toEqual([
      {
        severity: "error",
        message: "The namespace records of the records is being deleted with everything in it.",
        remedy: expect.stringMatching(
          `^\`kubectl describe namespace records\` shows what keeps it; wait until it is gone. ${creation}`,
        ),
      },
    ]);
  });
});
