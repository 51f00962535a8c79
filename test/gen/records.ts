import { randomUUID } from "node:crypto";
import { type ApiKey, apiKeySecret, newCredentials } from "../../src/records/api-key.ts";
import { type Organization, organizationConfigMap } from "../../src/records/organization.ts";
import { type Service, serviceConfigMap } from "../../src/records/service.ts";

type OrganizationFields = Pick<Organization, "id" | "name" | "createdAt" | "tier">;

/** An organization's ConfigMap, without a namespace. */
export function organizationRecord(
  fields: Partial<OrganizationFields> = {},
  data: Record<string, string> = {},
) {
  const record = organizationConfigMap({
    id: randomUUID(),
    name: "Acme",
    createdAt: new Date("2026-01-31T12:00:00Z"),
    tier: "scale",
    ...fields,
  });
  return { ...record, data: { ...record.data, ...data } };
}

/** A service's ConfigMap, without a namespace. */
export function serviceRecord(fields: Partial<Service> & Pick<Service, "organizationId" | "namespace">) {
  return serviceConfigMap({ id: randomUUID(), name: "orders", ...fields });
}

export interface KeyFields
  extends Partial<Pick<ApiKey, "name" | "roles" | "expireAt" | "ipAccessList" | "state">> {
  readonly organizationId: string;
  readonly keyId?: string;
  readonly keySecret?: string;
}

/** An API key's Secret, without a namespace, and what a caller presents to use it. */
export function keyRecord({ state = "enabled", ...fields }: KeyFields) {
  const credentials = { ...newCredentials(), ...fields };
  const id = randomUUID();
  const secret = apiKeySecret(
    {
      id,
      name: "test",
      roles: ["admin"],
      createdAt: new Date("2026-02-01T00:00:00Z"),
      expireAt: undefined,
      ipAccessList: [],
      ...fields,
    },
    credentials,
  );
  return {
    id,
    keyId: credentials.keyId,
    keySecret: credentials.keySecret,
    authorization: basic(credentials.keyId, credentials.keySecret),
    record: { ...secret, stringData: { ...secret.stringData, state } },
  };
}

export type KeyRecord = ReturnType<typeof keyRecord>;

/** The Authorization header of HTTP Basic. */
export function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}
