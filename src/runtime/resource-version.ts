/**
 * Resource versions are decimal numbers that increase with every write, until etcd is restored from a snapshot
 * (guaranteed since Kubernetes 1.35). They are compared as text, because they may exceed the precision of a number.
 *
 * @returns negative, zero or positive as `a` is older than, the same as or newer than `b`
 */
export function compareResourceVersions(a: string, b: string): number {
  return a.length === b.length ? Number(a > b) - Number(a < b) : a.length - b.length;
}
