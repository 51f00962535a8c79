import { BlockList, isIP } from "node:net";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Returns true for `localhost` and loopback addresses. @param host IPv6 addresses can have brackets, as in a URL */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(address);
  if (family === 0) return host === "localhost";
  return loopback.check(address, family === 4 ? "ipv4" : "ipv6");
}
