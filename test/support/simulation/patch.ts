/** Applies a patch to an object in the same way as the API server. */
export function patched(target: unknown, patch: unknown, isStrategic: boolean): unknown {
  if (Array.isArray(patch) && isStrategic) return mergedByName(target, patch);
  if (!isMap(patch)) return patch;
  const result = new Map(isMap(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, patched(result.get(key), value, isStrategic));
  }
  return Object.fromEntries(result);
}

/** A list without names is replaced. */
function mergedByName(target: unknown, patches: readonly unknown[]): unknown {
  if (patches.some((each) => nameOf(each) === undefined)) return patches;
  const items: unknown[] = Array.isArray(target) ? target : [];
  const merged = items.map((item) => {
    const patch = patches.find((each) => nameOf(each) === nameOf(item));
    return patch === undefined ? item : patched(item, patch, true);
  });
  const added = patches.filter((patch) => items.every((item) => nameOf(item) !== nameOf(patch)));
  return [...merged, ...added];
}

function nameOf(item: unknown): unknown {
  return isMap(item) ? new Map(Object.entries(item)).get("name") : undefined;
}

function isMap(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
