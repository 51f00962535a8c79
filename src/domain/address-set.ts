import { BlockList, isIP, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import * as z from "zod";

// ipaddr.js reads 010.0.0.1 as 8.0.0.1, and BlockList accepts anything that looks like a number, so zod decides what an
// address is.
const address = z.union([z.ipv4(), z.ipv6()]);
// zod accepts 2001:db8::/32.5.
const range = z.union([z.cidrv4(), z.cidrv6().regex(/\/\d+$/)]);

/** Prefix length of the IPv6 range that IPv4 addresses are mapped into, `::ffff:0:0/96`. */
const MAPPED_PREFIX = 96;

/** Returns true for an IPv4 or IPv6 address; false for an ambiguous notation such as `010.0.0.1`. */
export function isAddress(text: string): boolean {
  return address.safeParse(text).success;
}

/** @param text a valid address; a zone, which only names an interface of this machine, is dropped */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 {
  return ipaddr.process(normalized(text));
}

/** The URL parser writes IPv6 in hexadecimal digits; ipaddr.js does not read 64:ff9b::203.0.113.7. */
function normalized(text: string): string {
  const [unzoned = text] = text.split("%");
  return isIPv6(unzoned) ? new URL(`http://[${unzoned}]`).hostname.slice(1, -1) : unzoned;
}

/** A set of IPv4 and IPv6 addresses and CIDRs. */
export class AddressSet {
  // BlockList would apply an IPv6 range such as ::/0 to IPv4 addresses, too.
  readonly #v4 = new BlockList();
  readonly #v6 = new BlockList();

  /** Adds an address or a CIDR. If it is invalid, adds nothing and returns the problem, such as "must be …". */
  add(source: string): string | undefined {
    if (!isAddress(source) && !range.safeParse(source).success) return NO_ADDRESS;
    const [text = "", length] = source.split("/");
    const first = ipaddr.parse(normalized(text));
    const prefix = length === undefined ? first.toByteArray().length * 8 : Number(length);
    if (!isFirst(first, prefix)) return NOT_FIRST;
    if (first instanceof ipaddr.IPv4) this.#v4.addSubnet(first.toString(), prefix, "ipv4");
    else if (prefix < MAPPED_PREFIX || !first.isIPv4MappedAddress()) {
      this.#v6.addSubnet(first.toString(), prefix, "ipv6");
    } else this.#v4.addSubnet(first.toIPv4Address().toString(), prefix - MAPPED_PREFIX, "ipv4");
    return undefined;
  }

  /** Treats an IPv4-mapped IPv6 address as IPv4. No IPv6 range that is wider than `::ffff:0:0/96` contains it. */
  has(text: string): boolean {
    if (isIP(text) === 0) return false;
    const parsed = parseAddress(text);
    const list = parsed.kind() === "ipv4" ? this.#v4 : this.#v6;
    return list.check(parsed.toString(), parsed.kind());
  }
}

const NO_ADDRESS = "must be an IP address or a CIDR, such as 10.0.0.0/8 or 2001:db8::1";
const NOT_FIRST = "must begin with the first address of its range, as in 10.0.0.0/8 instead of 10.1.2.3/8";

/** Returns true if all bits after the prefix are 0. */
function isFirst(first: ipaddr.IPv4 | ipaddr.IPv6, prefix: number): boolean {
  return first.toByteArray().every((byte, at) => {
    const bits = Math.min(8, Math.max(0, prefix - at * 8));
    return (byte & (0xff >> bits)) === 0;
  });
}
