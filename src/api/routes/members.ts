import { type MembersDeps, removeMember } from "../members.ts";
import { memberAt, type Records } from "../places.ts";
import type { Operation, Route } from "../routes.ts";

const remove = {
  id: "removeMember",
  tag: "User management",
  summary: "Remove a member from an organization",
  description:
    "For keys with the role `admin`. An organization always keeps an admin: its last one cannot be removed.",
  refusals: {
    400: "The organizationId is no UUID, the userId is not UTF-8, or the member is the organization's last admin.",
    404: "There is no such organization, or it is not the key's own; or it has no such member, perhaps because the member has been removed already.",
  },
} as const satisfies Operation;

export function memberRoutes(records: Records, members: MembersDeps): readonly Route[] {
  return [
    {
      method: "DELETE",
      path: "/v1/organizations/{organizationId}/members/{userId}",
      operation: remove,
      async serve(call): Promise<void> {
        await removeMember(memberAt(call, records), call, members);
      },
    },
  ];
}
