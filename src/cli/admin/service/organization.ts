import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import {
  type Organization,
  organizationConfigMapName,
  parseOrganization,
} from "../../../records/organization.ts";
import type { Io } from "../../io.ts";
import type { Records } from "../records.ts";
import { wellFormed } from "../well-formed.ts";

/** The organization of a service, if its record can be read. */
export async function findOrganizationOf(
  records: Records,
  organizationId: string,
  io: Io,
): Promise<Organization | undefined> {
  const object = await records.get<ConfigMap>(CONFIG_MAPS, organizationConfigMapName(organizationId));
  const [organization] = wellFormed(io, object ? [object] : [], ({ metadata, data }) =>
    parseOrganization(metadata.name, data),
  );
  return organization;
}
