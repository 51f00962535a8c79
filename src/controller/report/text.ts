const MOST_NAMES = 5;

/** The first names, and the number of the others. */
export function nameList(names: readonly string[]): string {
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : "";
  return `${names.slice(0, MOST_NAMES).join(", ")}${more}`;
}

/** Whole seconds, like the times of Kubernetes. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
