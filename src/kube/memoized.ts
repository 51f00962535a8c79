type Argument = string | number | undefined;

/** Maximum number of results that are kept. */
const MAX_RESULTS = 100;

/** Keeps recent results of a function of few different arguments. Its callers share the results. */
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
