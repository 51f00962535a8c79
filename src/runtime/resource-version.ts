/**
 * Resource versions are numbers in decimal and, within one history of one cluster, grow with every write
 * (Kubernetes 1.35 made that a promise). Compared as text of unbounded length, so no precision is lost.
 *
 * @returns negative, zero or positive as `a` is older than, the same as or newer than `b`
 */
export function compareResourceVersions(a: string, b: string): number {
  return a.length === b.length ? Number(a > b) - Number(a < b) : a.length - b.length;
}
