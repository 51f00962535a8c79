import * as z from "zod";
import { argument } from "../argument.ts";
import { uuid } from "../values.ts";

export const serviceArgument = z.object({
  service: argument(uuid, { description: "id of the service" }),
});
