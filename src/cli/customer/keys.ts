import * as z from "zod";
import { defineCommand } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { printList } from "../output.ts";
import { accessOptions, organizationOption } from "./access.ts";
import { apiKeys } from "./answers.ts";
import { withApi } from "./api.ts";
import { organizationId, organizationPath } from "./places.ts";

export const keys = defineCommand({
  name: "keys",
  summary: "list the API keys of the organization",
  details:
    "Asks the HTTP API. KEY SUFFIX is the end of a key's id, by which one knows it; a secret is never told.",
  examples: ["keys", "keys --output yaml"],
  options: z.object({ ...organizationOption, ...outputOption, ...accessOptions }),
  async run({ organization, output, ...access }, io) {
    const { result } = await withApi(access, io, async (api) => {
      const id = await organizationId(api, organization);
      return await api.ask({ method: "GET", path: `${organizationPath(id)}/keys` }, apiKeys);
    });
    const columns = ["name", "keySuffix", "state", "roles", "createdAt", "expireAt", "usedAt", "allowFrom"];
    const rows = result.map((key) => ({ ...key, allowFrom: key.ipAccessList.map(({ source }) => source) }));
    printList(io, output, columns, output === "table" ? rows : result);
  },
});
