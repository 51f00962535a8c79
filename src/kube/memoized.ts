type Argument = string | number | undefined;

/** Maximum number of cached results. */
const MAX_RESULTS = 100;

/** Caches the results of a function with few different arguments. Callers share them and must not change them. */
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
 * Returns an equal value that callers share and must not change. This saves memory: thousands of objects contain the
 * same few names, hashes and resources, and the objects of a service usually come one after the other.
 */
export function shared<T>(value: T): T {
  return value === undefined ? value : (parsed(JSON.stringify(value)) as T);
}
