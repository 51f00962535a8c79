import * as z from "zod";
import { defineCommand } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { printList } from "../output.ts";
import { accessOptions } from "./access.ts";
import { organizations as answer } from "./answers.ts";
import { withApi } from "./api.ts";

export const organizations = defineCommand({
  name: "organizations",
  summary: "show the organization that the API key belongs to",
  details: "Asks the HTTP API. All organizations of a cluster are told by admin organization list.",
  examples: ["organizations", "organizations --profile staging --output json"],
  options: z.object({ ...outputOption, ...accessOptions }),
  async run({ output, ...access }, io) {
    const { result } = await withApi(access, io, (api) =>
      api.ask({ method: "GET", path: "/v1/organizations" }, answer),
    );
    printList(io, output, ["id", "name", "createdAt"], result);
  },
});
