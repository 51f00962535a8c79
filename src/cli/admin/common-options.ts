import { option } from "../../settings/option.ts";
import { uuid } from "../values.ts";

export const organizationOption = {
  organization: option(uuid, { placeholder: "uuid", description: "id of the organization" }),
};
