import type { KubeObject } from "../../kube/objects.ts";
import type { Parsed } from "../../records/parse.ts";
import type { Io } from "../io.ts";

/** The records that can be read; of each other one a line on standard error says what is wrong. */
export function wellFormed<O extends KubeObject, T>(
  io: Io,
  objects: readonly O[],
  parse: (object: O) => Parsed<T>,
): T[] {
  return objects.flatMap((object) => {
    const parsed = parse(object);
    if (parsed.ok) return [parsed.value];
    io.err(`The record ${object.metadata.name} is malformed and left out: ${parsed.problem}.\n`);
    return [];
  });
}
