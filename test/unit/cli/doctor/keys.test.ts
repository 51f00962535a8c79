import { describe, expect, it } from "vitest";
import { checkKeys } from "../../../../src/cli/doctor/references.ts";
import { apiKeySecretName } from "../../../../src/records/api-key.ts";
import { keyRecord, organizationRecord } from "../../../support/fixtures/records.ts";
import { clusterWith } from "./fake-reads.ts";

const NAME = apiKeySecretName("a");
const ORGANIZATION = "11111111-1111-4111-8111-111111111111";

/** The results for a key that may be used from these addresses. */
function check(...sources: readonly string[]) {
  const ipAccessList = sources.map((source) => ({ description: "", source }));
  const { record } = keyRecord({ organizationId: ORGANIZATION, ipAccessList });
  const data = Object.entries(record.stringData).map(([key, text]) => [
    key,
    Buffer.from(text).toString("base64"),
  ]);
  const secret = {
    ...record,
    metadata: { ...record.metadata, name: NAME },
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
});
