/**
 * The JSON merge patch (RFC 7386) that turns one value into another, or `undefined` when they are equal.
 * A key whose value is `undefined` is absent.
 */
export function mergePatch(from: object, to: object): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const key of Object.keys({ ...from, ...to })) {
    const change = difference(ownValue(from, key), ownValue(to, key));
    if (change !== undefined) patch[key] = change;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** Ignores inherited properties: a key, such as the name of a pipe, can be "constructor". */
function ownValue(object: object, key: string): unknown {
  return Object.hasOwn(object, key) ? Reflect.get(object, key) : undefined;
}

function difference(before: unknown, after: unknown): unknown {
  if (before === after) return undefined;
  if (after === undefined) return before === undefined ? undefined : null;
  if (isMap(before) && isMap(after)) return mergePatch(before, after);
  return sameJson(before, after) ? undefined : after;
}

function sameJson(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => sameJson(item, b[index]));
  }
  if (isMap(a) && isMap(b)) return mergePatch(a, b) === undefined;
  return a === b;
}

function isMap(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
