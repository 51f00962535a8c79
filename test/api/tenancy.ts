import type { Operation } from "../../src/api/openapi/operation.ts";

/** IDs of the objects that the path of an operation can name. */
export interface Ids {
  readonly organization: string;
  readonly service: string;
  readonly member: string;
}

/** How the tests call a write. */
interface Write {
  readonly body?: string;
  /** The only object that the write changes, in the format of `inventory` in tenants.test.ts. */
  readonly changes: (own: Ids) => string;
}

/** A boost that ends in an hour. */
export function aBoost(): { replicaCpuMillicores: number; replicaMemoryGb: number; until: string } {
  const until = new Date(Date.now() + 3_600_000).toISOString();
  return { replicaCpuMillicores: 8000, replicaMemoryGb: 32, until };
}

/** A row for each write, by operation ID. */
const WRITES: Readonly<Record<string, Write>> = {
  updateBackupConfiguration: {
    body: '{"backupPeriodInHours":12}',
    changes: ({ service }) => `configmaps/backup-${service}`,
  },
  updatePipeScaling: {
    body: '{"replicaCpuMillicores":4000}',
    changes: ({ service }) => `pipescalings/${service}`,
  },
  startPipeScalingBoost: {
    body: JSON.stringify(aBoost()),
    changes: ({ service }) => `pipescalings/${service}`,
  },
  endPipeScalingBoost: { changes: ({ service }) => `pipescalings/${service}` },
  removeMember: { changes: ({ organization }) => `configmaps/members-${organization}` },
};

/** The operation that lists the caller's organizations. Its path does not name an organization. */
export const LIST_OF_ORGANIZATIONS = "listOrganizations";

const ID_BY_PARAMETER: Readonly<Record<string, keyof Ids>> = {
  organizationId: "organization",
  serviceId: "service",
  userId: "member",
};

/** An operation on an organization or an object in it. */
export interface TenantOperation extends Partial<Write> {
  readonly id: string;
  readonly method: Operation["method"];
  /** The path for an organization and the IDs of objects in it. */
  readonly path: (organization: string, inside: Ids) => string;
  /** True if the path names an object in the organization. */
  readonly isDeep: boolean;
}

/**
 * Derives the rows of the tenancy test from the operations of the API.
 *
 * @throws Error with the name of an operation that the test cannot cover
 */
export function tenantOperations(operations: readonly Operation[]): readonly TenantOperation[] {
  return operations
    .filter(({ id }) => id !== LIST_OF_ORGANIZATIONS)
    .map(({ id, method, path }) => {
      const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
      const unknown = parameters.find((name) => !(name in ID_BY_PARAMETER));
      if (unknown) throw new Error(`${id} has the path parameter ${unknown}: add it to ID_BY_PARAMETER`);
      if (!parameters.includes("organizationId"))
        throw new Error(`the path of ${id} names no organization: test by hand who may call it`);
      const write = WRITES[id];
      if ((method === "GET") === (write !== undefined))
        throw new Error(write ? `${id} is a read, but has a row in WRITES` : `${id} has no row in WRITES`);
      return {
        id,
        method,
        path: (organization, inside) =>
          path.replace(/\{(\w+)\}/g, (_, name: string) => {
            const kind = ID_BY_PARAMETER[name] ?? "organization";
            return kind === "organization" ? organization : inside[kind];
          }),
        isDeep: parameters.length > 1,
        ...write,
      };
    });
}

/** Returns the rows of `WRITES` whose operation does not exist. */
export function unusedRows(operations: readonly Operation[]): string[] {
  return Object.keys(WRITES).filter((id) => !operations.some((operation) => operation.id === id));
}
