import type { IncomingMessage } from "node:http";
import { AddressSet, isAddress } from "./address-set.ts";

export interface ProxySettings {
  /** Addresses and CIDRs of the proxies whose `X-Forwarded-For` is believed; none by default. */
  readonly trustedProxies?: readonly string[] | undefined;
}

/**
 * From which address a request comes. Each proxy puts the address that it was called from at the end of
 * `X-Forwarded-For`, so the list is read from there, and only as far as proxies that we trust wrote it: what
 * stands to the left of the first other address is that caller's own word, and may be anything. The
 * `Forwarded` header is ignored: a proxy that keeps up only one of the two passes the other on as it came.
 */
export class ClientAddresses {
  readonly #proxies: AddressSet | undefined;

  /** @throws Error with a sentence for the user */
  constructor({ trustedProxies = [] }: ProxySettings = {}) {
    if (trustedProxies.length === 0) return;
    this.#proxies = new AddressSet();
    for (const source of trustedProxies) {
      if (this.#proxies.add(source)) continue;
      throw new Error(
        `The trusted proxy ${JSON.stringify(source)} is neither an IP address nor a CIDR, such as 10.0.0.0/8 or 2001:db8::1.`,
      );
    }
  }

  /** `undefined` if the connection is gone. */
  of({ socket, headers }: Pick<IncomingMessage, "headers"> & RequestSocket): string | undefined {
    const peer = socket.remoteAddress;
    const forwarded = headers["x-forwarded-for"];
    // Node joins several of them by commas, in the order in which they came.
    if (!this.#proxies || peer === undefined || typeof forwarded !== "string") return peer;
    return lastUntrusted(peer, forwarded, this.#proxies);
  }
}

interface RequestSocket {
  readonly socket: { readonly remoteAddress?: string | undefined };
}

// Not trim(), which takes for blank what HTTP does not. Without the look behind, each blank of a run would be
// tried as the first of those at the end.
const BLANKS = /^[ \t]+|(?<![ \t])[ \t]+$/g;

/** Something that is no address ends the walk at the proxy that wrote it: who called it, it did not say. */
function lastUntrusted(peer: string, forwarded: string, proxies: AddressSet): string {
  let address = peer;
  let end = forwarded.length;
  while (end >= 0 && proxies.has(address)) {
    const comma = forwarded.lastIndexOf(",", end - 1);
    const caller = forwarded.slice(comma + 1, end).replace(BLANKS, "");
    if (!isAddress(caller)) break;
    address = caller;
    end = comma;
  }
  return address;
}
