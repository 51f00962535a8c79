import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, onTestFinished, test } from "vitest";
import { keyRecord, organizationRecord, serviceRecord } from "../../../support/fixtures/records.ts";
import { startProgram } from "../../../support/terminal/program.ts";

const organization = organizationRecord();
const organizationId = organization.metadata.name.slice("organization-".length);
const key = keyRecord({ organizationId });
const service = serviceRecord({ organizationId, namespace: "pipes" });
const serviceId = service.metadata.name.slice("service-".length);
const two = { replicaCpuMillicores: 2000, replicaMemoryGb: 8, summary: "2 cpu / 8 Gi" };
const scaling = {
  metadata: { name: serviceId, namespace: "pipes", uid: "u", resourceVersion: "1", generation: 1 },
  spec: { replicaCpuMillicores: 4000, replicaMemoryGb: 16 },
  status: { history: [{ ...two, source: "Spec", result: "Scaled", startedAt: "2026-06-01T12:00:00Z" }] },
};

/** The key's Secret as the API server returns it. */
const secret = {
  type: key.record.type,
  metadata: { ...key.record.metadata, uid: "u", resourceVersion: "1" },
  data: Object.fromEntries(
    Object.entries(key.record.stringData).map(([name, text]) => [name, Buffer.from(text).toString("base64")]),
  ),
};

interface FakeCluster {
  /** Flags that select this cluster. */
  readonly flags: readonly string[];
  /** Responses that have not been sent yet. */
  readonly pending: ServerResponse[];
}

/** A cluster with one organization that has one key. The test sends the responses to requests that match. */
async function startFakeCluster(isHeld: (request: IncomingMessage) => boolean): Promise<FakeCluster> {
  const pending: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    if (isHeld(request)) pending.push(response);
    else if (request.url?.includes("/secrets/")) response.writeHead(404).end("{}");
    else response.end(JSON.stringify(bodyFor(request.url ?? "")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return { flags: ["--kubeconfig", kubeconfig(`http://127.0.0.1:${port}`)], pending };
}

function bodyFor(url: string): object {
  if (url.includes("/configmaps/organization-")) return organization;
  if (url.includes("/configmaps/service-")) return service;
  if (url.includes("/pipescalings/")) return scaling;
  if (url.includes("/secrets?")) return { metadata: {}, items: [secret] };
  return { metadata: {}, items: [] };
}

function kubeconfig(server: string): string {
  const dir = mkdtempSync(join(tmpdir(), "pipe-scaling-lost-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "x",
    clusters: [{ name: "x", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "x", user: { token: "t" } }],
    contexts: [{ name: "x", context: { cluster: "x", user: "x" } }],
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

const CREATE = [
  "admin",
  "key",
  "create",
  "--organization",
  organizationId,
  "--name",
  "ci",
  "--role",
  "admin",
];
const isSecret = ({ url }: IncomingMessage) => url?.includes("/secrets/") === true;
const isWrite = ({ method }: IncomingMessage) => method !== "GET";

async function nextRequest({ pending }: FakeCluster): Promise<ServerResponse> {
  return await waitFor(() => pending.shift(), { what: "the request" });
}

describe("a write with an unknown outcome", () => {
  const WRITES: readonly (readonly [name: string, words: readonly string[], sentence: RegExp])[] = [
    ["admin key create", CREATE, /^The key was not created, so you can run the command again \(POST /],
    [
      "admin key rotate",
      ["admin", "key", "rotate", key.id],
      /^Nothing was added to API key \S+, so you can run the command again \(PATCH /,
    ],
    [
      "admin service rollback",
      ["admin", "service", "rollback", serviceId],
      /^The write was not confirmed, so the size of service \S+ may have changed: see `pipe-scaling admin service show \S+ --kubeconfig \S+ --namespace \S+` before you run the command again, because a second rollback may change the size again \(PATCH /,
    ],
    [
      "admin organization create",
      ["admin", "organization", "create", "--name", "Acme", "--tier", "scale"],
      /^The organization may have been created with the ID (\S+): see `pipe-scaling admin organization show \1 --kubeconfig \S+ --namespace \S+`\. If it was not, run the command again with `--id \1`, which never creates a second one \(POST /,
    ],
    [
      "admin organization create --create-namespace",
      ["admin", "organization", "create", "--name", "Acme", "--tier", "scale", "--create-namespace"],
      /^The namespace \S+ may have been created, but no organization\. You can run the command again \(POST \/api\/v1\/namespaces:/,
    ],
    [
      "admin service create --id",
      [
        ...["admin", "service", "create", "--organization", organizationId, "--name", "orders"],
        ...["--pipes-namespace", "pipes", "--id", serviceId],
      ],
      new RegExp(
        `^The service may have been created with the ID ${serviceId}: see \`pipe-scaling admin service show ${serviceId} .* with \`--id ${serviceId}\`, which never creates a second one \\(POST `,
      ),
    ],
    [
      "admin organization update",
      ["admin", "organization", "update", organizationId, "--name", "Acme Inc"],
      /^The change of organization \S+ may have been made: see `pipe-scaling admin organization show \S+ --kubeconfig \S+ --namespace \S+` before you run the command again \(PATCH /,
    ],
    [
      "admin key disable",
      ["admin", "key", "disable", key.id],
      /^The change of API key \S+ may have been made: see `pipe-scaling admin key show \S+ .*` before you run the command again \(PATCH /,
    ],
    [
      "admin member add",
      [
        ...["admin", "member", "add", "--organization", organizationId, "--user-id", "u-1", "--name", "Ada"],
        ...["--email", "ada@example.com", "--role", "admin"],
      ],
      /^User u-1 may have been added: see `pipe-scaling admin member list --organization \S+ .*` before you run the command again \(PATCH /,
    ],
    [
      "admin service open-window",
      ["admin", "service", "open-window", serviceId],
      /^The rollouts of service \S+ may be allowed to start already: see `pipe-scaling status \S+ --watch .*`\. You can run the command again, which only sets the time again \(PATCH /,
    ],
    [
      "admin key delete",
      ["admin", "key", "delete", key.id, "--yes"],
      /^The Secret api-key-\S+ may have been deleted\. Run the command again: it deletes what is left, or says that there is nothing to delete \(DELETE \S+: [^\n]+\)\.\n$/,
    ],
  ];

  async function err(words: readonly string[], respond: (response: ServerResponse) => void): Promise<string> {
    const cluster = await startFakeCluster(isWrite);
    const program = startProgram([...words, ...cluster.flags]);
    respond(await nextRequest(cluster));
    expect(await program.exitCode).toBe(1);
    expect(program.out()).toBe("");
    return program.err();
  }

  test.each(WRITES)(
    "explains how to find the outcome if the response is lost: %s",
    async (_, words, sentence) => {
      expect(await err(words, (response) => response.destroy())).toMatch(sentence);
    },
  );

  test.each(WRITES)("explains how to find the outcome after a 504: %s", async (_, words, sentence) => {
    const body = { kind: "Status", code: 504, reason: "Timeout", message: "request did not complete" };
    const timedOut = (response: ServerResponse) => response.writeHead(504).end(JSON.stringify(body));
    expect(await err(words, timedOut)).toMatch(sentence);
  });

  test("is not reported after a response that rejects the write", async () => {
    const body = { kind: "Status", code: 403, reason: "Forbidden", message: "no" };
    const refuse = (response: ServerResponse) => response.writeHead(403).end(JSON.stringify(body));
    expect(await err(CREATE, refuse)).toMatch(
      /^The Kubernetes API rejected the request: POST \S+: 403 no\.\n$/,
    );
  });
});

test("a write that was not sent is not reported as one that may have been made", async () => {
  const flags = ["--kubeconfig", kubeconfig("http://127.0.0.1:1")];
  const create = ["admin", "organization", "create", "--name", "Acme", "--tier", "scale", ...flags];
  const program = startProgram(create);
  expect(await program.exitCode).toBe(1);
  expect(program.err()).toMatch(
    /^The Kubernetes API cannot be reached: POST \S+: no response from \S+: connect ECONNREFUSED \S+\. Check the kubeconfig, and that its server runs\.\n$/,
  );
});

describe("Ctrl-C", () => {
  test("ends a read command immediately", async () => {
    const cluster = await startFakeCluster(() => true);
    const program = startProgram(["admin", "organization", "list", ...cluster.flags]);
    await nextRequest(cluster);
    program.signal("SIGINT");
    expect(await program.exitCode).toBe(130);
    expect({ out: program.out(), err: program.err() }).toEqual({ out: "", err: "Interrupted.\n" });
  });

  test("waits for a write in progress, so that its outcome is known", async () => {
    const cluster = await startFakeCluster(isWrite);
    const program = startProgram([...CREATE, ...cluster.flags]);
    const response = await nextRequest(cluster);
    program.signal("SIGINT");
    response.end("{}");
    expect(await program.exitCode).toBe(0);
    expect(program.out()).toMatch(/^KEY SECRET +\S{43}$/m);
  });

  test("does not end the read that finds the outcome of a write", async () => {
    const cluster = await startFakeCluster((request) => isWrite(request) || isSecret(request));
    const program = startProgram([...CREATE, ...cluster.flags]);
    const response = await nextRequest(cluster);
    program.signal("SIGINT");
    response.destroy();
    (await nextRequest(cluster)).end("{}");
    expect(await program.exitCode).toBe(0);
    expect(program.out()).toMatch(/^KEY SECRET +\S{43}$/m);
  });
});
