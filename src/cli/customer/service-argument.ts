import * as z from "zod";
import { canonicalUuid } from "../../domain/identifiers.ts";
import { written } from "../../settings/values.ts";
import { argument } from "../argument.ts";

/** A person is likely to write the name of a service, so the rule says where its id is. */
const serviceId = written(
  "it must be the UUID of a service, from the list of `pipe-scaling services`",
  canonicalUuid,
);

export const serviceArgument = z.object({
  service: argument(serviceId, {
    description: "id of the service, from the list of `pipe-scaling services`",
  }),
});
