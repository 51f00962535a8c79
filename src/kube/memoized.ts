type Argument = string | number | undefined;

/** Maximum number of cached results. */
const MAX_RESULTS = 100;

/** Caches the results of a function that gets few different arguments. Callers share them, so they must not change. */
export function memoized<Arguments extends readonly Argument[], Result>(
  compute: (...args: Arguments) => Result,
): (...args: Arguments) => Result {
  const results = new Map<Argument, Result>();
  return (...args) => {
    const key = args.length === 1 ? args[0] : args.join("\0");
    const known = results.get(key);
    if (known !== undefined) return known;
    const result = compute(...args);
    if (results.size >= MAX_RESULTS) results.clear();
    results.set(key, result);
    return result;
  };
}

const parsed = memoized((json: string): unknown => JSON.parse(json));

/**
 * Thousands of objects have the same few names, hashes and resources, and those of a service usually come one after the
 * other. Returns an equal value that they share, to save memory.
 */
export function shared<T>(value: T): T {
  return value === undefined ? value : (parsed(JSON.stringify(value)) as T);
}
