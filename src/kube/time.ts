/** A time of the Kubernetes API, such as `creationTimestamp`, in milliseconds since 1970; 0 if it is absent or invalid. */
export function parseTime(time: string | undefined): number {
  return Date.parse(time ?? "") || 0;
}

/** Formats a time as in the Kubernetes API, in whole seconds. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
