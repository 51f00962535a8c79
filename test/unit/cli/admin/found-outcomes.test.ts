import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { formatSecretHashes, sha256 } from "../../../../src/records/api-key.ts";
import type { FakeResponse, ReceivedRequest } from "../../../support/fakes/fake-http-server.ts";
import { keyRecord, organizationRecord } from "../../../support/fixtures/records.ts";
import { type FakeRecord, FakeRecords, status } from "./fake-records.ts";

const ACME = randomUUID();
const KEY = keyRecord({ organizationId: ACME, keySecret: "old" });
const ROTATE = `admin key rotate ${KEY.id}`;
const CREATE = `admin key create --organization ${ACME} --name ci --role admin`;
const PLACE = "--kubeconfig \\S+ --namespace pipe-scaling-records";

/** The responses after which the outcome of a write is unknown. */
const IN_DOUBT: readonly (readonly [name: string, response: FakeResponse])[] = [
  ["a 504", status(504, "Timeout", "request did not complete")],
  ["a response that cannot be read", { body: "" }],
];
const UNAVAILABLE = status(503, "ServiceUnavailable", "down");

function withSecrets(...secrets: readonly string[]): FakeRecord {
  const { record } = KEY;
  const secretHash = formatSecretHashes(secrets.map(sha256));
  return { ...record, stringData: { ...record.stringData, secretHash } };
}

/** The key as the write of the command leaves it. */
function asWritten({ body }: ReceivedRequest): FakeRecord {
  const { data } = body as { readonly data: Readonly<Record<string, string>> };
  const secretHash = Buffer.from(data["secretHash"] ?? "", "base64").toString();
  return { ...KEY.record, stringData: { ...KEY.record.stringData, secretHash } };
}

interface Given {
  /** The record, where an administrator has written another one. */
  readonly key?: FakeRecord;
  /** Runs when the write arrives. */
  readonly onWrite?: (records: FakeRecords, write: ReceivedRequest) => void;
  readonly response: FakeResponse;
  /** The response to the reads after the write, or before it if there is none. */
  readonly read?: FakeResponse;
}

async function run(words: string, { key = KEY.record, onWrite, response, read }: Given) {
  const records = new FakeRecords(organizationRecord({ id: ACME }), key);
  let isWritten = onWrite === undefined;
  records.intercept = (request) => {
    if (request.method === "GET") return isWritten && request.path.includes("/secrets") ? read : undefined;
    onWrite?.(records, request);
    isWritten = true;
    return response;
  };
  return await records.run(words);
}

const nothing = () => undefined;

describe.each(IN_DOUBT)("admin key rotate, after %s", (_, response) => {
  it("prints the secret if it was added", async () => {
    const { code, out, err } = await run(`${ROTATE} --output json`, {
      response,
      onWrite: (records, write) => records.put(asWritten(write)),
    });
    expect({ code, out, err }).toEqual({
      code: 0,
      out: expect.stringMatching(/"keySecret": "\S{43}"/),
      err: expect.stringMatching(/^Save the key secret now\./),
    });
  });

  it.each<[string, NonNullable<Given["onWrite"]>]>([
    ["no secret was added", nothing],
    ["another person added one", (records) => records.put(withSecrets("old", "of a colleague"))],
  ])("says that nothing was added if %s", async (_, onWrite) => {
    const { code, out, err } = await run(ROTATE, { response, onWrite });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(
      /^Nothing was added to API key \S+, so you can run the command again \(PATCH .*\)\.\n$/,
    );
  });

  it("says how to find out if the key cannot be read", async () => {
    const { code, out, err } = await run(ROTATE, { response, onWrite: nothing, read: UNAVAILABLE });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(
      new RegExp(
        `^The secret may have been added, but it is lost\\. See \`pipe-scaling admin key show ${KEY.id} ${PLACE}\`: if the key has one secret, nothing was added, and you can run the command again\\. If it has two, ask first if another person rotates the key: if not, drop the newer secret with \`pipe-scaling ${ROTATE} --cancel ${PLACE}\` \\(PATCH .*\\)\\.\n$`,
      ),
    );
  });

  it("says how to find out if another person has made the record malformed", async () => {
    const { err } = await run(ROTATE, {
      response,
      onWrite: (records) => records.put({ ...KEY.record, stringData: { id: KEY.id } }),
    });
    expect(err).toMatch(/^The secret may have been added, but it is lost\. See /);
  });

  it("passes on the same response to the first read, because nothing was sent", async () => {
    const key = withSecrets("old", "of a colleague");
    const { code, err, writes } = await run(ROTATE, { key, response, read: response });
    expect({ code, writes }).toEqual({ code: 1, writes: [] });
    expect(err).toMatch(/^The Kubernetes API (did not complete the request|cannot be reached): GET /);
    expect(err).not.toMatch(/may have been|--cancel/);
  });
});

describe.each(IN_DOUBT)("admin key create, after %s", (_, response) => {
  it("prints the secret if the key was created", async () => {
    const { code, out } = await run(`${CREATE} --output json`, {
      response,
      onWrite: (records, { body }) => records.put(body as FakeRecord),
    });
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/"keySecret": "\S{43}"/) });
  });

  it("says that the command can be repeated if the key was not created", async () => {
    const { code, out, err } = await run(CREATE, { response, onWrite: nothing });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^The key was not created, so you can run the command again \(POST .*\)\.\n$/);
  });

  it("says how to find out if the key cannot be read", async () => {
    const { code, out, err } = await run(CREATE, { response, onWrite: nothing, read: UNAVAILABLE });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(
      new RegExp(
        `^The key may have been created, but its secret is lost\\. If \`pipe-scaling admin key list --organization ${ACME} ${PLACE}\` lists the ID \\S+, delete that key \\(POST `,
      ),
    );
  });
});
