import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { COMMANDS } from "../../src/all-commands.ts";
import { admin } from "../../src/cli/admin/admin.ts";
import { runProgram } from "../../src/cli/program.ts";
import type { ConfigMap, Secret } from "../../src/kube/objects.ts";
import { apiKeySecretName, parseApiKey, sha256 } from "../../src/records/api-key.ts";
import { parseMember } from "../../src/records/members.ts";
import { parseOrganization } from "../../src/records/organization.ts";
import { parseService } from "../../src/records/service.ts";
import { fakeIo } from "../support/fakes/fake-io.ts";

const NAMESPACE = `seed-${randomUUID().slice(0, 8)}`;
const ABSENT = "6f1c2f0e-58a2-4c3e-9a55-0d6a1b9b3c11";

let cluster: Cluster;
let organization: string;

async function run(
  words: readonly string[],
  { namespace = NAMESPACE, kubeconfig = cluster.kubeconfig } = {},
) {
  const io = fakeIo();
  const code = await runProgram(
    { ...COMMANDS, commands: admin },
    [...words, "--kubeconfig", kubeconfig, "--namespace", namespace],
    io,
  );
  return { code, ...io.written };
}

/** Runs a command that must succeed, and returns the JSON that it prints. */
async function json<T>(schema: z.ZodType<T>, ...words: string[]): Promise<T> {
  const { code, out, err } = await run([...words, "--output", "json"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return schema.parse(JSON.parse(out));
}

async function object<T>(kind: string, name: string): Promise<T> {
  return JSON.parse(await kubectl(cluster, ["get", kind, name, "-n", NAMESPACE, "-o", "json"]));
}

const SAVE_IT =
  /^Save the key secret now\. It cannot be shown again\. If it is lost, delete the key: pipe-scaling admin key delete \S{36} .*\n$/;

const made = z.looseObject({ id: z.guid() });

beforeAll(async () => {
  cluster = await sharedCluster();
  const words = [
    "admin",
    "organization",
    "create",
    "--name",
    "Acme Corp",
    "--tier",
    "basic",
    "--create-namespace",
  ];
  organization = (await json(made, ...words)).id;
});

describe("admin organization create", () => {
  test("writes a record that the parser accepts", async () => {
    const { metadata, data } = await object<ConfigMap>("configmap", `organization-${organization}`);
    expect(metadata.labels).toEqual({
      "pipes.clouddb.dev/resource": "organization",
      "pipes.clouddb.dev/organization": organization,
    });
    expect(parseOrganization(metadata.name, data)).toMatchObject({
      ok: true,
      value: { id: organization, name: "Acme Corp", tier: "basic", byocConfig: [], privateEndpoints: [] },
    });
  });

  test("never overwrites an existing record", async () => {
    const before = await object<ConfigMap>("configmap", `organization-${organization}`);
    const { code, out, err } = await run([
      ...[
        "admin",
        "organization",
        "create",
        "--name",
        "Other",
        "--tier",
        "scale",
        "--id",
        organization.toUpperCase(),
      ],
      ...["--output", "json"],
    ]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(
      `The organization with the ID ${organization} already exists, and nothing was changed.\n`,
    );
    expect(await object("configmap", `organization-${organization}`)).toEqual(before);
  });

  test.each([["admin", "organization", "create", "--name", "x", "--tier", "basic"]])(
    "fails if the namespace of the records does not exist, and names the command that creates it: %s %s",
    async (...words) => {
      const { code, out, err } = await run(words, { namespace: "no-such-namespace" });
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toMatch(
        /^There is no namespace no-such-namespace .*`kubectl create namespace no-such-namespace --kubeconfig \S+`.*--create-namespace/,
      );
    },
  );

  test("fails without permission, and names the account", async () => {
    const account = "unprivileged";
    await kubectl(cluster, ["create", "serviceaccount", account, "-n", NAMESPACE]);
    const kubeconfig = await serviceAccountKubeconfig(cluster, NAMESPACE, account);
    const { code, err } = await run(["admin", "organization", "create", "--name", "x", "--tier", "basic"], {
      kubeconfig,
    });
    expect(code).toBe(1);
    expect(err).toMatch(/^The Kubernetes API rejected the request: .* is forbidden: .*unprivileged.*\n$/);
  });
});

describe("admin organization list", () => {
  test("prints a readable table", async () => {
    const { code, out } = await run(["admin", "organization", "list"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^ID +NAME +TIER +CREATED AT\n/);
    expect(out).toMatch(new RegExp(`^${organization} +Acme Corp +basic +20\\d\\d-`, "m"));
  });

  test("prints well-formed records as a JSON array, and reports malformed ones", async () => {
    const namespace = `${NAMESPACE}-malformed`;
    await kubectl(cluster, ["create", "namespace", namespace]);
    await apply(cluster, [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: {
          name: `organization-${ABSENT}`,
          namespace,
          labels: { "pipes.clouddb.dev/resource": "organization", "pipes.clouddb.dev/organization": ABSENT },
        },
        data: { name: "No tier", createdAt: "2026-01-01T00:00:00Z" },
      },
    ]);
    const { code, out, err } = await run(["admin", "organization", "list", "--output", "json"], {
      namespace,
    });
    expect({ code, out }).toEqual({ code: 0, out: "[]\n" });
    expect(err).toBe(`The record organization-${ABSENT} is malformed and was skipped: tier: is missing.\n`);
    const service = await run(
      ["admin", "service", "create", "--organization", ABSENT, "--name", "s", "--pipes-namespace", "p"],
      { namespace },
    );
    expect(service.code).toBe(1);
    expect(service.err).toMatch(/is malformed: .* Fix it with `kubectl edit configmap /);
  });
});

describe("admin service create", () => {
  const create = (...more: string[]) => [
    ...["admin", "service", "create", "--name", "orders", "--pipes-namespace", "acme-pipes"],
    ...more,
  ];

  test("writes a record that the parser accepts and that list shows", async () => {
    const service = await json(made, ...create("--organization", organization));
    const { metadata, data } = await object<ConfigMap>("configmap", `service-${service.id}`);
    const value = { id: service.id, organizationId: organization, name: "orders", namespace: "acme-pipes" };
    expect(parseService(metadata.name, metadata.labels, data)).toEqual({ ok: true, value });
    expect(
      await json(z.array(z.unknown()), "admin", "service", "list", "--organization", organization),
    ).toContainEqual(value);
    expect(await json(z.array(z.unknown()), "admin", "service", "list", "--organization", ABSENT)).toEqual(
      [],
    );
  });

  test("never overwrites an existing record", async () => {
    const { id } = await json(made, ...create("--organization", organization));
    const { code, err } = await run(create("--organization", organization, "--id", id));
    expect(code).toBe(1);
    expect(err).toBe(`The service with the ID ${id} already exists, and nothing was changed.\n`);
  });

  test("rejects an unknown organization", async () => {
    const { code, err } = await run(create("--organization", ABSENT));
    expect(code).toBe(1);
    expect(err).toMatch(`There is no organization with the ID ${ABSENT} in the namespace ${NAMESPACE}`);
  });
});

describe("admin member add", () => {
  const add = (to: string, userId: string) => [
    ...["admin", "member", "add", "--organization", to, "--user-id", userId, "--name", `User ${userId}`],
    ...["--email", "user@example.com", "--role", "developer"],
  ];

  test("adds all members if many are added concurrently to an organization without members", async () => {
    const words = ["admin", "organization", "create", "--name", "Crowd", "--tier", "basic"];
    const crowd = (await json(made, ...words)).id;
    const users = Array.from({ length: 12 }, (_, index) => `user ${index}/ü`);
    const done = await Promise.all(users.map((user) => run(add(crowd, user))));
    expect(done.map(({ code, err }) => ({ code, err }))).toEqual(users.map(() => ({ code: 0, err: "" })));
    const { data = {} } = await object<ConfigMap>("configmap", `members-${crowd}`);
    const members = Object.entries(data).map(([key, value]) => parseMember(key, value));
    expect(members.map((each) => (each.ok ? each.value.userId : each.problem)).sort()).toEqual(
      [...users].sort(),
    );
  });

  test("adds a user only once if many commands run concurrently, and the others report that it is already a member", async () => {
    await run(add(organization, "u-first"));
    const done = await Promise.all(Array.from({ length: 12 }, () => run(add(organization, "u-once"))));
    expect(done.filter(({ code }) => code === 0)).toHaveLength(1);
    for (const { code, err } of done) {
      if (code !== 0) expect(err).toContain("User u-once is already a member of organization");
    }
  });

  test("does not change an existing member", async () => {
    const first = await run(add(organization, "u-1"));
    expect(first.code).toBe(0);
    const before = await object<ConfigMap>("configmap", `members-${organization}`);
    const { code, err } = await run(add(organization, "u-1"));
    expect(code).toBe(1);
    expect(err).toBe(`User u-1 is already a member of organization ${organization}. Nothing was changed.\n`);
    expect(await object("configmap", `members-${organization}`)).toEqual(before);
  });

  test("rejects an unknown organization", async () => {
    const { code, err } = await run(add(ABSENT, "u-1"));
    expect(code).toBe(1);
    expect(err).toContain("There is no organization with the ID");
  });
});

describe("admin key create", () => {
  const madeKey = z.looseObject({ keyId: z.string(), keySecret: z.string(), id: z.guid() });
  const create = (of: string, ...more: string[]) => [
    ...["admin", "key", "create", "--organization", of, "--name", "ci", "--role", "developer"],
    ...more,
  ];

  test("prints the secret once, and stores only its hashes", async () => {
    const options = ["--role", "admin", "--role", "admin", "--expire-at", "2099-01-01T01:00:00+01:00"];
    const { code, out, err } = await run([
      ...create(organization, ...options),
      ...["--allow-from", "10.0.0.0/8", "--allow-from", "2001:db8::1", "--output", "json"],
    ]);
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(SAVE_IT) });
    const key = madeKey.parse(JSON.parse(out));
    expect(Object.keys(key)).toEqual(
      expect.arrayContaining(["keyId", "keySecret", "id", "organizationId", "name", "roles", "createdAt"]),
    );
    const secret = await object<Secret>("secret", apiKeySecretName(key.keyId));
    expect(secret.type).toBe("pipes.clouddb.dev/api-key");
    expect(parseApiKey(secret.metadata.name, secret.metadata.labels, secret.data)).toMatchObject({
      ok: true,
      value: {
        id: key.id,
        organizationId: organization,
        name: "ci",
        keySuffix: key.keyId.slice(-4),
        secretHashes: [sha256(key.keySecret)],
        state: "enabled",
        roles: ["developer", "admin"],
        expireAt: new Date("2099-01-01T00:00:00Z"),
        ipAccessList: [
          { description: "", source: "10.0.0.0/8" },
          { description: "", source: "2001:db8::1" },
        ],
      },
    });
    const everything = await kubectl(cluster, ["get", "secrets,configmaps", "-n", NAMESPACE, "-o", "json"]);
    for (const clear of [key.keyId, key.keySecret]) {
      expect(everything).not.toContain(clear);
      expect(everything).not.toContain(Buffer.from(clear).toString("base64"));
    }
    const list = await run(["admin", "key", "list", "--organization", organization]);
    expect(list.out).toContain(key.id);
    expect(list.out).toContain(apiKeySecretName(key.keyId));
    expect(list.out + list.err).not.toContain(key.keySecret);
  });

  test("prints a readable table, and warns that the secret is shown only once", async () => {
    const { code, out, err } = await run(create(organization));
    expect(code).toBe(0);
    expect(out).toMatch(/^KEY ID +[A-Za-z0-9]{20}\nKEY SECRET +\S{43}\n/);
    expect(err).toMatch(SAVE_IT);
  });

  test("rejects an unknown organization", async () => {
    const { code, out, err } = await run(create(ABSENT, "--output", "json"));
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain("There is no organization with the ID");
  });

  test("rejects more than 100 keys, and accepts another one after a deletion", async () => {
    const words = ["admin", "organization", "create", "--name", "Keys", "--tier", "basic"];
    const of = (await json(made, ...words)).id;
    const labels = { "pipes.clouddb.dev/resource": "api-key", "pipes.clouddb.dev/organization": of };
    await apply(
      cluster,
      Array.from({ length: 100 }, (_, index) => ({
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: `api-key-${of}-${index}`, namespace: NAMESPACE, labels },
      })),
    );
    const refused = await run(create(of));
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(`Organization ${of} has 100 API keys, and the maximum is 100`);
    await kubectl(cluster, ["delete", "secret", `api-key-${of}-0`, "-n", NAMESPACE]);
    expect((await run(create(of))).code).toBe(0);
  });
});
