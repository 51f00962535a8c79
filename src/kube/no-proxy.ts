import { BlockList, isIP } from "node:net";

const DEFAULT_PORTS: ReadonlyMap<string, string> = new Map([
  ["http:", "80"],
  ["https:", "443"],
]);

/**
 * Whether NO_PROXY, read as Go's programs and so kubectl read it, excepts a server. Its entries are `*`, names, which
 * have their subdomains with them unless they begin with a dot, addresses and CIDRs, each with a port or without.
 */
export function isExcepted(noProxy: string, { protocol, hostname, port }: URL): boolean {
  const host = unbracketed(hostname).toLowerCase().replace(/\.$/, "");
  const wanted = port || DEFAULT_PORTS.get(protocol);
  return noProxy
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry === "*" || isMeant(entry, host, wanted));
}

function isMeant(entry: string, host: string, port: string | undefined): boolean {
  const [, name = entry, ofPort] = /^(\[.*\]|[^:]*):(\d+)$/.exec(entry) ?? [];
  if (name === "" || (ofPort !== undefined && ofPort !== port)) return false;
  const isAddress = isIP(host) !== 0;
  if (isAddress) return isWithin(host, unbracketed(name));
  const domain = name.replace(/^\*?\./, "");
  return host.endsWith(`.${domain}`) || (host === domain && domain === name);
}

/** @param range an address or a CIDR; anything else has no address */
function isWithin(address: string, range: string): boolean {
  const [base = "", bits] = range.split("/");
  const family = isIP(base);
  if (family === 0 || family !== isIP(address)) return false;
  const type = family === 4 ? "ipv4" : "ipv6";
  const most = family === 4 ? 32 : 128;
  const prefix = bits === undefined ? most : Number(bits);
  if (!Number.isInteger(prefix) || prefix < 0 || prefix > most) return false;
  const list = new BlockList();
  list.addSubnet(base, prefix, type);
  return list.check(address, type);
}

function unbracketed(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1");
}
