import type { ConfigMap } from "../../../kube/objects.ts";
import { type Member, parseMembers } from "../../../records/members.ts";
import type { Io } from "../../io.ts";

/** The members that can be read; of each other entry a line on standard error says what is wrong. */
export function membersOf(io: Io, object: ConfigMap | undefined): Member[] {
  return [...parseMembers(object?.data).values()].flatMap((parsed) => {
    if (parsed.ok) return [parsed.value];
    io.err(`An entry of ${object?.metadata.name} is malformed and left out: ${parsed.problem}.\n`);
    return [];
  });
}
