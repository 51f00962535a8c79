import type { IncomingMessage } from "node:http";
import type { RequestHandler } from "express";
import proxyAddr from "proxy-addr";
import { AddressSet, isAddress } from "../../domain/address-set.ts";
import { apiError } from "../errors.ts";
import type { RequestContext } from "./request-context.ts";

/** The proxies whose `X-Forwarded-For` is trusted. */
export class TrustedProxies {
  readonly #proxies: AddressSet | undefined;

  /**
   * @param sources addresses and CIDRs; without any, a client's address is that of its connection
   * @throws Error with a sentence for the user
   */
  constructor(sources: readonly string[]) {
    if (sources.length === 0) return;
    this.#proxies = new AddressSet();
    for (const source of sources) {
      const problem = this.#proxies.add(source);
      if (problem !== undefined) throw new Error(`The trusted proxy ${JSON.stringify(source)} ${problem}.`);
    }
  }

  has(address: string): boolean {
    return this.#proxies?.has(address) === true;
  }

  /**
   * Returns the address of the client of a request. Each proxy appends the address of its peer to `X-Forwarded-For`, so
   * only the last entries, which trusted proxies wrote, count. The `Forwarded` header is ignored: a proxy that
   * maintains only one of the two passes the other on unchanged.
   *
   * @returns `undefined` if the connection is gone, or if a trusted proxy sent something that is not an address. With
   *   the address of the proxy instead, every client would pass an access list that contains the proxy.
   */
  clientIp(request: IncomingMessage): string | undefined {
    const { remoteAddress } = request.socket;
    const proxies = this.#proxies;
    const isForwarded = request.headers["x-forwarded-for"] !== undefined;
    if (!proxies || !isForwarded || remoteAddress === undefined) return remoteAddress;
    // The first entry is the address of the connection, which can have a zone, as in fe80::1%eth0.
    const [, ...forwarded] = proxyAddr.all(request, (entry, hop) => {
      const address = hop === 0 ? entry : addressIn(entry);
      return address !== undefined && proxies.has(address);
    });
    const client = forwarded.at(-1);
    return client === undefined ? remoteAddress : addressIn(client);
  }
}

/** `203.0.113.7`, `203.0.113.7:443`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:443` are addresses. */
const ENTRY = /^[ \t]*(?:([\d.]+)(?::\d{1,5})?|([\da-fA-F:.]+)|\[([\da-fA-F:.]+)\](?::\d{1,5})?)[ \t]*$/;

function addressIn(entry: string): string | undefined {
  const [, v4, v6, bracketed] = ENTRY.exec(entry) ?? [];
  const address = v4 ?? v6 ?? bracketed;
  return address !== undefined && isAddress(address) ? address : undefined;
}

/** Rejects a request if the access list of its key does not allow the client address. */
export const allowClientIp: RequestHandler = ({ context }, _response, next) => {
  requireAllowedIp(context);
  next();
};

/** @throws ApiError 403 */
export function requireAllowedIp({ key, clientIp }: Pick<RequestContext, "key" | "clientIp">): void {
  if (key?.view.access.allows(clientIp) === true) return;
  throw apiError("AddressNotAllowed");
}
