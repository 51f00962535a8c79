import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RecordWriter } from "../../src/api/cluster/record-writer.ts";
import { type MembersView, toMembersView } from "../../src/api/cluster/views.ts";
import { WriteQueue } from "../../src/api/cluster/write-queue.ts";
import { type MembersServiceDeps, removeMember } from "../../src/api/resources/members/service.ts";
import { KubeClient, type KubeRequest } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { KubeApiError, KubeUnreachableError } from "../../src/kube/errors.ts";
import { parseOrganization } from "../../src/records/organization.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { organizationRecord } from "../support/fixtures/records.ts";
import { setUpEnvironment } from "./fixtures.ts";
import { addMember, addMembers, entriesOf, membersPath, type Roles, readMembers } from "./member-records.ts";

const environment = setUpEnvironment("members-removal");
/** A client with the permissions of the API. */
let client: KubeClient;

beforeAll(async () => {
  client = new KubeClient(await connect(environment.kubeconfig));
});

afterAll(() => client?.close());

/** @returns the ID of the organization */
async function addOrganization(roles: Roles): Promise<string> {
  const id = randomUUID();
  await addMembers(environment, id, roles);
  return id;
}

/** The parts of a process that a removal uses: its cache and its requests to the cluster. */
class Process {
  readonly calls: KubeRequest[] = [];
  cached: MembersView | undefined;
  /** Can replace the result of a request. */
  link: (call: () => Promise<unknown>, request: KubeRequest) => Promise<unknown> = (call) => call();

  readonly #deps: MembersServiceDeps;

  constructor() {
    const { calls } = this;
    const through = (request: KubeRequest) => this.link(() => client.json(request), request);
    const linked = {
      async json<T>(request: KubeRequest): Promise<T> {
        calls.push(request);
        return JSON.parse(JSON.stringify(await through(request)));
      },
    };
    this.#deps = {
      cache: { record: () => this.cached, observeRecord: () => undefined },
      recordWriter: new RecordWriter(linked, environment.records),
      memberWrites: new WriteQueue(systemClock),
      log: createLogger("silent", "api"),
    };
  }

  async sees(organizationId: string): Promise<this> {
    this.cached = toMembersView(await readMembers(environment, organizationId));
    return this;
  }

  remove(organizationId: string, userId: string): Promise<void> {
    const record = organizationRecord({ id: organizationId });
    const organization = parseOrganization(record.metadata.name, record.data);
    if (!organization.ok) throw new Error(organization.problem);
    const origin = { requestId: randomUUID(), apiKey: randomUUID(), permit: () => undefined };
    return removeMember({ organization: organization.value, userId }, origin, this.#deps);
  }
}

const lost = () => new KubeUnreachableError("PATCH: no response: reset");

describe("a removal", () => {
  it("is a single request with the cached resource version", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    await process.remove(organization, "bob");
    const { uid, resourceVersion } = process.cached?.metadata ?? {};
    expect(process.calls).toMatchObject([
      {
        method: "PATCH",
        patchType: "application/merge-patch+json",
        body: { metadata: { uid, resourceVersion }, data: { bob: null } },
      },
    ]);
  });

  it("based on a stale version is validated again: the other admin was removed meanwhile", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "admin" });
    const first = await new Process().sees(organization);
    const second = await new Process().sees(organization);
    await first.remove(organization, "ada");
    await expect(second.remove(organization, "bob")).rejects.toMatchObject({
      reason: "LastAdmin",
      status: 400,
    });
    expect(second.calls.map(({ method = "GET" }) => method)).toEqual(["PATCH", "GET"]);
    expect(await entriesOf(environment, organization)).toEqual(["bob"]);
  });

  it("is not rejected because of a stale version: another admin was added meanwhile", async () => {
    const organization = await addOrganization({ ada: "admin" });
    const process = await new Process().sees(organization);
    await addMember(environment, organization, "bob", "admin");
    await process.remove(organization, "ada");
    expect(await entriesOf(environment, organization)).toEqual(["bob"]);
  });

  it("applies to a record that was deleted and recreated", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    await environment.admin.json({ method: "DELETE", path: membersPath(environment, organization) });
    await addMembers(environment, organization, { eve: "admin", bob: "developer" });
    await process.remove(organization, "bob");
    expect(await entriesOf(environment, organization)).toEqual(["eve"]);
  });

  it.each([
    ["lost", lost()],
    ["a timeout", new KubeApiError("PATCH", 504, "{}")],
  ])("that succeeded, but whose response was %s, is reported as successful", async (_what, error) => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    process.link = async (call, { method }) => {
      const response = await call();
      if (method === "PATCH") throw error;
      return response;
    };
    await process.remove(organization, "bob");
    expect(await entriesOf(environment, organization)).toEqual(["ada"]);
  });

  it("whose request was lost fails with 503 and changes nothing", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    process.link = (call, { method }) => (method === "PATCH" ? Promise.reject(lost()) : call());
    await expect(process.remove(organization, "bob")).rejects.toMatchObject({
      reason: "NotConfirmed",
      status: 503,
    });
    expect(await entriesOf(environment, organization)).toEqual(["ada", "bob"]);
  });

  it("fails with 503 if the cluster becomes unreachable after the request", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    process.link = async (call, { method }) => {
      if (method === "PATCH") await call();
      throw lost();
    };
    await expect(process.remove(organization, "bob")).rejects.toMatchObject({
      reason: "NotConfirmed",
      status: 503,
    });
  });

  it("fails with 503 that its outcome is not known if the cluster refuses the read after the lost response", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    process.link = async (call, { method }) => {
      if (method !== "PATCH") throw new KubeApiError("GET", 429, "{}");
      await call();
      throw lost();
    };
    await expect(process.remove(organization, "bob")).rejects.toMatchObject({
      reason: "NotConfirmed",
      status: 503,
    });
  });

  it("of a member who was already removed fails with 404", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    await (await new Process().sees(organization)).remove(organization, "bob");
    await expect(process.remove(organization, "bob")).rejects.toMatchObject({
      reason: "NoSuchMember",
      status: 404,
    });
  });
});
