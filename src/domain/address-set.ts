import { BlockList, isIPv4, isIPv6 } from "node:net";
import * as z from "zod";

// Node's BlockList accepts anything that looks like a number, so zod decides what an address is.
const v4 = z.ipv4();
const v6 = z.ipv6();
const v4Range = z.cidrv4();
const v6Range = z.cidrv6();

/** Returns true for an address in a spelling that every program reads in the same way. */
export function isAddress(text: string): boolean {
  return v4.safeParse(text).success || v6.safeParse(text).success;
}

/** A set of IPv4 and IPv6 addresses and CIDRs. */
export class AddressSet {
  readonly #list = new BlockList();

  /** Returns `false` and adds nothing if the source is neither an address nor a CIDR. */
  add(source: string): boolean {
    if (v4.safeParse(source).success) this.#list.addAddress(source, "ipv4");
    else if (v6.safeParse(source).success) this.#list.addAddress(source, "ipv6");
    else if (v4Range.safeParse(source).success) this.#addRange(source, "ipv4");
    else if (v6Range.safeParse(source).success) this.#addRange(source, "ipv6");
    else return false;
    return true;
  }

  /** BlockList treats `::ffff:10.1.2.3` and 10.1.2.3 as equal, in every spelling and on both sides. */
  has(address: string): boolean {
    if (isIPv4(address)) return this.#list.check(address, "ipv4");
    return isIPv6(address) && this.#list.check(address, "ipv6");
  }

  #addRange(source: string, family: "ipv4" | "ipv6"): void {
    const slash = source.indexOf("/");
    this.#list.addSubnet(source.slice(0, slash), Number(source.slice(slash + 1)), family);
  }
}
