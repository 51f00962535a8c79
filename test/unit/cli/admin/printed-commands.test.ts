import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { formatSecretHashes, sha256 } from "../../../../src/records/api-key.ts";
import { keyRecord, organizationRecord, serviceRecord } from "../../../support/fixtures/records.ts";
import { FakeRecords, status } from "./fake-records.ts";

const ACME = randomUUID();
const UNKNOWN = randomUUID();
const KEY = keyRecord({ organizationId: ACME });
const ROTATED = keyRecord({ organizationId: ACME });
const TWO_SECRETS = {
  ...ROTATED.record,
  stringData: {
    ...ROTATED.record.stringData,
    secretHash: formatSecretHashes(["first", "second"].map(sha256)),
  },
};
const CLUSTER = "--kubeconfig \\S+ --context x";
const PLACE = `${CLUSTER} --namespace acme`;

it.each([
  [`admin service show ${UNKNOWN}`, `To list the IDs: pipe-scaling admin service list ${PLACE}\n`],
  [
    `admin member remove ada --organization ${ACME}`,
    `To list the members: pipe-scaling admin member list --organization ${ACME} ${PLACE}\n`,
  ],
  [
    `admin organization delete ${ACME}`,
    `Delete the services first \\(\`pipe-scaling admin service list --organization ${ACME} ${PLACE}\`\\)`,
  ],
  [
    "admin organization create --name New --tier basic",
    `\`kubectl create namespace acme ${CLUSTER}\` or \`pipe-scaling admin organization create --create-namespace --name <name> --tier <tier> ${PLACE}\``,
  ],
  [
    `admin key rotate ${KEY.id} --finish`,
    `To add another: pipe-scaling admin key rotate ${KEY.id} ${PLACE}\n`,
  ],
  [
    `admin key rotate ${ROTATED.id}`,
    `If no client has the newer secret, drop it with \`pipe-scaling admin key rotate ${ROTATED.id} --cancel ${PLACE}\`. If all clients use it, drop the older one with \`pipe-scaling admin key rotate ${ROTATED.id} --finish ${PLACE}\``,
  ],
])("the error of %s names a command for the same cluster", async (words, command) => {
  const service = serviceRecord({ organizationId: ACME, namespace: "pipes" });
  const records = new FakeRecords(organizationRecord({ id: ACME }), service, KEY.record, TWO_SECRETS);
  records.intercept = ({ method }) =>
    method === "POST" ? status(404, "NotFound", 'namespaces "acme" not found') : undefined;
  const { code, err } = await records.run(`${words} --context x --namespace acme`);
  expect(code).toBe(1);
  expect(err).toMatch(new RegExp(command));
  // Nothing else would be copied with the command.
  expect(err).not.toMatch(/--namespace acme[.,;:)]/);
});
