/** Checks a claim of the demo; a failure ends it with exit code 1. */
export function check(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}
