import { BlockList, isIPv4, isIPv6 } from "node:net";
import * as z from "zod";
import type { ApiKey } from "../records/api-key.ts";

/** From which addresses a key may be used. */
export interface AccessList {
  allows(address: string | undefined): boolean;
  /** Why it denies everything, if it does. */
  readonly problem?: string;
}

const EVERYWHERE: AccessList = { allows: () => true };

// Node's BlockList takes whatever looks like a number, so what is an address is for zod to say.
const v4 = z.ipv4();
const v6 = z.ipv6();
const v4Range = z.cidrv4();
const v6Range = z.cidrv6();

/**
 * The key's list, ready to be asked. No entry allows everything; one malformed entry denies everything,
 * because what its author meant to allow is unknown (api-contract, part 2).
 */
export function accessListOf(entries: ApiKey["ipAccessList"]): AccessList {
  if (entries.length === 0) return EVERYWHERE;
  const list = new BlockList();
  for (const [at, { source }] of entries.entries()) {
    if (!add(list, source)) {
      const problem = `ipAccessList: entry ${at + 1} is neither an address nor a CIDR, so the key is denied everywhere`;
      return { allows: () => false, problem };
    }
  }
  return { allows: (address) => address !== undefined && contains(list, address) };
}

function add(list: BlockList, source: string): boolean {
  if (v4.safeParse(source).success) list.addAddress(source, "ipv4");
  else if (v6.safeParse(source).success) list.addAddress(source, "ipv6");
  else if (v4Range.safeParse(source).success) addRange(list, source, "ipv4");
  else if (v6Range.safeParse(source).success) addRange(list, source, "ipv6");
  else return false;
  return true;
}

function addRange(list: BlockList, source: string, family: "ipv4" | "ipv6"): void {
  const slash = source.indexOf("/");
  list.addSubnet(source.slice(0, slash), Number(source.slice(slash + 1)), family);
}

/** BlockList itself knows that `::ffff:10.1.2.3` is 10.1.2.3, in whatever spelling, on both sides. */
function contains(list: BlockList, address: string): boolean {
  if (isIPv4(address)) return list.check(address, "ipv4");
  return isIPv6(address) && list.check(address, "ipv6");
}
