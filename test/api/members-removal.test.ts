import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RecordWriter } from "../../src/api/cluster/record-writer.ts";
import { type MembersView, toMembersView } from "../../src/api/cluster/views.ts";
import { WriteQueue } from "../../src/api/cluster/write-queue.ts";
import { InvalidRequestError, NotFoundError, UnavailableError } from "../../src/api/errors.ts";
import { type MembersServiceDeps, removeMember } from "../../src/api/resources/members/service.ts";
import { KubeClient, type KubeRequest } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { KubeApiError, KubeUnreachableError } from "../../src/kube/errors.ts";
import { parseOrganization } from "../../src/records/organization.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { organizationRecord } from "../support/fixtures/records.ts";
import { addMember, addMembers, entriesOf, membersPath, type Roles, readMembers } from "./members-world.ts";
import { createWorld, type World } from "./world.ts";

let world: World;
/** With the rights of the API. */
let client: KubeClient;

beforeAll(async () => {
  world = await createWorld("members-removal");
  client = new KubeClient(await connect(world.kubeconfig));
});

afterAll(async () => {
  await client?.close();
  await world?.remove();
});

/** @returns its id */
async function addOrganization(roles: Roles): Promise<string> {
  const id = randomUUID();
  await addMembers(world, id, roles);
  return id;
}

/** One process as far as a removal is concerned: what it has cached, and its calls to the cluster. */
class Process {
  readonly calls: KubeRequest[] = [];
  cached: MembersView | undefined;
  /** Makes of a call and its answer what the process sees. */
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
      cache: { members: () => this.cached, observeRecord: () => undefined },
      recordWriter: new RecordWriter(linked, world.records),
      memberWrites: new WriteQueue(systemClock),
      log: createLogger("silent", "api"),
    };
  }

  async sees(organizationId: string): Promise<this> {
    this.cached = toMembersView(await readMembers(world, organizationId));
    return this;
  }

  remove(organizationId: string, userId: string): Promise<void> {
    const record = organizationRecord({ id: organizationId });
    const organization = parseOrganization(record.metadata.name, record.data);
    if (!organization.ok) throw new Error(organization.problem);
    const origin = { requestId: randomUUID(), apiKey: randomUUID() };
    return removeMember({ organization: organization.value, userId }, origin, this.#deps);
  }
}

const lost = () => new KubeUnreachableError("PATCH: no answer: reset");

describe("a removal", () => {
  it("is one call, bound to the version that the cache has", async () => {
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

  it("decided on an old version is decided again: the other admin has gone meanwhile", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "admin" });
    const first = await new Process().sees(organization);
    const second = await new Process().sees(organization);
    await first.remove(organization, "ada");
    await expect(second.remove(organization, "bob")).rejects.toBeInstanceOf(InvalidRequestError);
    expect(second.calls.map(({ method = "GET" }) => method)).toEqual(["PATCH", "GET"]);
    expect(await entriesOf(world, organization)).toEqual(["bob"]);
  });

  it("is not refused on an old version: another admin has come meanwhile", async () => {
    const organization = await addOrganization({ ada: "admin" });
    const process = await new Process().sees(organization);
    await addMember(world, organization, "bob", "admin");
    await process.remove(organization, "ada");
    expect(await entriesOf(world, organization)).toEqual(["bob"]);
  });

  it("goes to the record that has taken the name of another", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    await world.admin.json({ method: "DELETE", path: membersPath(world, organization) });
    await addMembers(world, organization, { eve: "admin", bob: "developer" });
    await process.remove(organization, "bob");
    expect(await entriesOf(world, organization)).toEqual(["eve"]);
  });

  it.each([
    ["lost", lost()],
    ["a timeout", new KubeApiError("PATCH", 504, "{}")],
  ])("that was made, but whose answer was %s, has been made", async (_what, error) => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    process.link = async (call, { method }) => {
      const answer = await call();
      if (method === "PATCH") throw error;
      return answer;
    };
    await process.remove(organization, "bob");
    expect(await entriesOf(world, organization)).toEqual(["ada"]);
  });

  it("that never arrived answers 503 and has changed nothing", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    process.link = (call, { method }) => (method === "PATCH" ? Promise.reject(lost()) : call());
    await expect(process.remove(organization, "bob")).rejects.toBeInstanceOf(UnavailableError);
    expect(await entriesOf(world, organization)).toEqual(["ada", "bob"]);
  });

  it("after which nothing can be reached answers 503", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    process.link = async (call, { method }) => {
      if (method === "PATCH") await call();
      throw lost();
    };
    await expect(process.remove(organization, "bob")).rejects.toBeInstanceOf(UnavailableError);
  });

  it("of somebody who was gone before answers 404, lost answers or not", async () => {
    const organization = await addOrganization({ ada: "admin", bob: "developer" });
    const process = await new Process().sees(organization);
    await (await new Process().sees(organization)).remove(organization, "bob");
    await expect(process.remove(organization, "bob")).rejects.toBeInstanceOf(NotFoundError);
  });
});
