/**
 * Resource versions are decimal numbers that increase with every write, until etcd is restored from a snapshot
 * (guaranteed since Kubernetes 1.35). They are compared as text, because they may exceed the precision of a number.
 *
 * @returns a negative number if `a` is older than `b`, zero if they are equal, and a positive number if `a` is newer
 */
export function compareResourceVersions(a: string, b: string): number {
  return a.length === b.length ? Number(a > b) - Number(a < b) : a.length - b.length;
}
