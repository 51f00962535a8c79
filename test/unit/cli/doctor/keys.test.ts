import { describe, expect, it } from "vitest";
import { checkKeys, checkRecords } from "../../../../src/cli/doctor/references.ts";
import { apiKeySecretName } from "../../../../src/records/api-key.ts";
import { membersRecord } from "../../../api/member-records.ts";
import { keyRecord, organizationRecord, serviceRecord } from "../../../support/fixtures/records.ts";
import { clusterWith } from "./fake-reads.ts";

const NAME = apiKeySecretName("a");
const ORGANIZATION = "11111111-1111-4111-8111-111111111111";

/** The results for a key that may be used from these addresses. */
function check(...sources: readonly string[]) {
  return checkSecret({}, ...sources);
}

/** @param changed the parts of the Secret that differ from those of a healthy key */
function checkSecret(changed: { readonly type?: string; readonly name?: string }, ...sources: string[]) {
  const { name = NAME, ...type } = changed;
  const ipAccessList = sources.map((source) => ({ description: "", source }));
  const { record } = keyRecord({ organizationId: ORGANIZATION, ipAccessList });
  const data = Object.entries(record.stringData).map(([key, text]) => [
    key,
    Buffer.from(text).toString("base64"),
  ]);
  const secret = {
    ...record,
    ...type,
    metadata: { ...record.metadata, name },
    data: Object.fromEntries(data),
  };
  return checkKeys(
    clusterWith({
      "/api/v1/namespaces/records/secrets": { metadata: {}, items: [secret] },
      "/api/v1/namespaces/records/configmaps": {
        metadata: {},
        items: [organizationRecord({ id: ORGANIZATION })],
      },
    }),
  );
}

describe("the keys check of doctor", () => {
  it("reports a key that a malformed address denies everywhere", async () => {
    expect(await check("10.0.0.0/8", "10.0.0.300")).toEqual([
      {
        severity: "error",
        message: expect.stringMatching(
          /^The secret \S+ is malformed: ipAccessList: entry 2 .*; until then, the key is denied everywhere\.$/,
        ),
        remedy: `\`kubectl edit secret ${NAME} --namespace records\`, and write values as plain text under a new key stringData.`,
      },
    ]);
  });

  it("accepts a key with an access list, and one without", async () => {
    expect(await check("10.0.0.0/8")).toEqual([]);
    expect(await check()).toEqual([]);
  });

  it.each([
    ["type", { type: "Opaque" }, NAME],
    ["name", { name: `${NAME}-k7h2f9m4t5` }, `${NAME}-k7h2f9m4t5`],
  ])("does not advise an edit of a wrong %s, which Kubernetes would reject", async (part, changed, name) => {
    expect(await checkSecret(changed)).toEqual([
      {
        severity: "error",
        message: expect.stringContaining(`The secret ${name} is malformed: the ${part} must be `),
        remedy: createdAgain("secret", name),
      },
    ]);
  });
});

describe("the records check of doctor", () => {
  it.each([
    ["of members", membersRecord("acme", { ada: "admin", bob: "developer" })],
    ["of an organization", organizationRecord({ id: "acme" })],
    ["of a service", serviceRecord({ id: "orders", organizationId: ORGANIZATION, namespace: "pipes" })],
  ])("does not advise an edit of the wrong name of a record %s", async (_, record) => {
    const items = [organizationRecord({ id: ORGANIZATION }), record];
    const cluster = clusterWith({
      "/api/v1/namespaces/records/configmaps": { metadata: {}, items },
    });
    const { name } = record.metadata;
    expect(await checkRecords(cluster)).toEqual([
      {
        severity: "error",
        message: expect.stringContaining(`The configmap ${name} is malformed: the name must be `),
        remedy: createdAgain("configmap", name),
      },
    ]);
  });

  it("advises to edit a value, which an edit can change", async () => {
    const { data, ...record } = organizationRecord({ id: ORGANIZATION });
    const cluster = clusterWith({
      "/api/v1/namespaces/records/configmaps": {
        metadata: {},
        items: [{ ...record, data: { ...data, createdAt: "yesterday" } }],
      },
    });
    const remedy = `kubectl edit configmap ${record.metadata.name} --namespace records`;
    expect(await checkRecords(cluster)).toEqual([expect.objectContaining({ remedy })]);
  });
});

function createdAgain(resource: string, name: string): string {
  return `No edit can change that: save the output of \`kubectl get ${resource} ${name} --namespace records --output yaml\`, delete the ${resource}, and create it again from the corrected output.`;
}
