import { type MembersDeps, removeMember } from "../members.ts";
import { memberAt, type Records } from "../places.ts";
import type { Route } from "../routes.ts";

export function memberRoutes(records: Records, members: MembersDeps): readonly Route[] {
  return [
    {
      method: "DELETE",
      path: "/v1/organizations/{organizationId}/members/{userId}",
      async serve(call): Promise<void> {
        await removeMember(memberAt(call, records), call, members);
      },
    },
  ];
}
