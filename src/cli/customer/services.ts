import * as z from "zod";
import { defineCommand } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { printList } from "../output.ts";
import { accessOptions, organizationOption } from "./access.ts";
import { services as answer } from "./answers.ts";
import { withApi } from "./api.ts";
import { organizationId, organizationPath } from "./places.ts";

export const services = defineCommand({
  name: "services",
  summary: "list the services of the organization",
  details: "Asks the HTTP API. The commands of scaling and backup take the id of a service.",
  examples: ["services", "services --profile staging --output json"],
  options: z.object({ ...organizationOption, ...outputOption, ...accessOptions }),
  async run({ organization, output, ...access }, io) {
    const { result } = await withApi(access, io, async (api) => {
      const id = await organizationId(api, organization);
      return await api.ask({ method: "GET", path: `${organizationPath(id)}/services` }, answer);
    });
    printList(io, output, ["id", "name"], result);
  },
});
