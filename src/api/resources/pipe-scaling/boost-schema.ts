import * as z from "zod";
import type { Boost } from "../../../domain/boost.ts";
import type { Size } from "../../../domain/size.ts";
import { instant } from "../schema-parts.ts";
import { pipeScaling, ratioRule, requestedFields, sizeIn, toPipeScaling } from "./schema.ts";

const UNTIL_RULE = "must be a date-time with seconds and a time zone, such as 2026-01-31T20:00:00Z";

const dateTime = z.iso.datetime({ offset: true });

/** RFC 3339 requires seconds, unlike ISO 8601. */
export const until = z
  .string(UNTIL_RULE)
  .refine((text) => dateTime.safeParse(text).success && /T\d\d:\d\d:\d\d/.test(text), UNTIL_RULE);

export const boost = pipeScaling.extend({ until: instant }).meta({
  id: "PipeScalingBoost",
  description: "A size with an end: the size that the pipes of a service should have until then.",
});

type BoostObject = z.infer<typeof boost>;

export function toBoost({ size, untilMs }: Boost): BoostObject {
  return { ...toPipeScaling(size), until: new Date(untilMs).toISOString() };
}

/** The body of a PUT. The service checks the end, because the allowed ends depend on the time. */
export function boostRequest(maximum: Size) {
  return z
    .strictObject(requestedFields(maximum))
    .partial()
    .extend({
      until: until.meta({
        format: "date-time",
        description: "End of the boost, in the future. Any UTC offset is allowed; responses are in UTC.",
        examples: ["2026-01-31T20:00:00Z"],
      }),
    })
    .meta({
      id: "PipeScalingBoostRequest",
      description:
        "The end of the boost, and its size. As for a rescale, send one of the two fields of the size, and the API derives the other, or send both.",
      minProperties: 2,
      ...ratioRule(maximum),
    })
    .transform(({ until: end, ...size }, context): Boost => {
      return { size: sizeIn(size, context), untilMs: Date.parse(end) };
    });
}
