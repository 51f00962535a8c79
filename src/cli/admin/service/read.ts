import type { ConfigMap } from "../../../kube/objects.ts";
import { parseService, type Service } from "../../../records/service.ts";
import type { Io } from "../../io.ts";
import { wellFormed } from "../well-formed.ts";

/** The services of records that can be read. */
export function servicesOf(io: Io, objects: readonly ConfigMap[]): Service[] {
  return wellFormed(io, objects, ({ metadata, data }) => parseService(metadata.name, metadata.labels, data));
}
