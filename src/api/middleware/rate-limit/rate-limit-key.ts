import { isIPv4 } from "node:net";

/**
 * The source that failed authentications and connections count against: an IPv4 address, or the /64 of an IPv6 one,
 * because the owner of one address of a /64 has all 2^64 of them. An IPv4 address mapped into IPv6 is that address.
 */
export function rateLimitKey(address: string | undefined): string {
  // All unknown addresses share one key.
  if (address === undefined) return "";
  if (isIPv4(address)) return address;
  const groups = groupsOf(address);
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (!mapped) return groups.slice(0, 4).map(hexadecimal).join(":");
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join(".");
}

/** Returns the eight groups of an IPv6 address in any notation. */
function groupsOf(address: string): number[] {
  const [unzoned = ""] = address.split("%");
  const [head = "", tail = ""] = unzoned.split("::");
  const left = read(head);
  const right = read(tail);
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

function read(groups: string): number[] {
  if (groups === "") return [];
  return groups
    .split(":")
    .flatMap((group) => (group.includes(".") ? readDotted(group) : parseInt(group, 16)));
}

function readDotted(address: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}

function hexadecimal(group: number): string {
  return group.toString(16);
}
