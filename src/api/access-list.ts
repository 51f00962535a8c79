import type { ApiKey } from "../records/api-key.ts";
import { AddressSet } from "./address-set.ts";

/** From which addresses a key may be used. */
export interface AccessList {
  allows(address: string | undefined): boolean;
  /** Why it denies everything, if it does. */
  readonly problem?: string;
}

const EVERYWHERE: AccessList = { allows: () => true };

/**
 * The key's list, ready to be asked. No entry allows everything; one malformed entry denies everything,
 * because what its author meant to allow is unknown (api-contract, part 2).
 */
export function accessListOf(entries: ApiKey["ipAccessList"]): AccessList {
  if (entries.length === 0) return EVERYWHERE;
  const allowed = new AddressSet();
  for (const [at, { source }] of entries.entries()) {
    if (!allowed.add(source)) {
      const problem = `ipAccessList: entry ${at + 1} is neither an address nor a CIDR, so the key is denied everywhere`;
      return { allows: () => false, problem };
    }
  }
  return { allows: (address) => address !== undefined && allowed.has(address) };
}
