import { parseAddress } from "../domain/address-set.ts";

/**
 * The source that failed authentications and connections count against: an IPv4 address, or the /64 of an IPv6 one,
 * because the owner of one address of a /64 has all 2^64 of them. An IPv4-mapped IPv6 address counts as the IPv4 one.
 */
export function rateLimitKey(address: string | undefined): string {
  // All unknown addresses share one key.
  if (address === undefined) return "";
  const parsed = parseAddress(address);
  if (!("parts" in parsed)) return parsed.toString();
  return parsed.parts
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":");
}
