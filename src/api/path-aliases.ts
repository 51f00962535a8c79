import type { Operation } from "./openapi/operation.ts";

/** Other names for literal segments of paths: alias to segment. */
export type PathAliases = ReadonlyMap<string, string>;

/**
 * Returns the express path of an operation, followed by one for each combination of aliases.
 *
 * @param path `/v1/things/{thingId}`
 */
export function expressPaths(path: string, aliases: PathAliases): string[] {
  return path
    .split("/")
    .map((segment) => alternatives(segment, aliases))
    .reduce((paths, names) => paths.flatMap((start) => names.map((name) => `${start}/${name}`)), [""])
    .map((each) => each.slice(1));
}

function alternatives(segment: string, aliases: PathAliases): string[] {
  if (isParameter(segment)) return [`:${segment.slice(1, -1)}`];
  return [segment, ...[...aliases].flatMap(([alias, of]) => (of === segment ? [alias] : []))];
}

function isParameter(segment: string): boolean {
  return segment.startsWith("{");
}

/** @throws Error with a sentence for the user if an alias is for an unknown segment, or hides a segment */
export function requirePathAliases(operations: readonly Operation[], aliases: PathAliases): void {
  const literals = new Set(operations.flatMap(({ path }) => literalsOf(path)));
  for (const [alias, segment] of aliases) {
    const subject = `The path alias ${JSON.stringify(alias)} cannot stand for ${JSON.stringify(segment)}`;
    if (!literals.has(segment)) {
      const known = [...literals].join(", ");
      throw new Error(`${subject}, which is not a segment of any path; the segments are ${known}.`);
    }
    if (literals.has(alias)) throw new Error(`${subject}, because it is a segment of a path itself.`);
  }
}

/** Without the version, which every path starts with. */
function literalsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== "v1" && !isParameter(segment));
}
