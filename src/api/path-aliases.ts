/** Maps each alias to the literal path segment that it can replace. */
export type PathAliases = ReadonlyMap<string, string>;

/**
 * Returns the express path of an operation, followed by one for each combination of aliases.
 *
 * @param path such as `/v1/things/{thingId}`
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
