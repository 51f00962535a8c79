import { AddressSet } from "./address-set.ts";

/** The addresses that a key may be used from. */
export interface AccessList {
  allows(address: string | undefined): boolean;
  /** The reason why the list denies every address, if it does. */
  readonly problem?: string;
}

const EVERYWHERE: AccessList = { allows: () => true };

/**
 * An empty list allows every address. One malformed entry denies every address, because the intention of its
 * author is unknown.
 */
export function accessListOf(entries: readonly { readonly source: string }[]): AccessList {
  if (entries.length === 0) return EVERYWHERE;
  const allowed = new AddressSet();
  for (const [at, { source }] of entries.entries()) {
    const problem = allowed.add(source);
    if (problem === undefined) continue;
    return {
      allows: () => false,
      problem: `ipAccessList: entry ${at + 1} ${problem}; until then, the key is denied everywhere`,
    };
  }
  return { allows: (address) => address !== undefined && allowed.has(address) };
}
