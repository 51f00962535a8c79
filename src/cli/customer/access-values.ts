import { isLoopback } from "../../kube/loopback.ts";
import { written } from "../../settings/values.ts";

/** Texts that say how to reach the API, as they are written on a command line and in a profile. */

/** A base path may be part of it; the operations' paths, which begin with /v1, follow. */
export const apiUrl = written(
  "it must be the address of an API, such as https://api.example.com, without /v1 at its end and with no user in it",
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) return undefined;
    const { username, password, search, hash, pathname } = url;
    if (username || password || search || hash || /\/v1\/?$/.test(pathname)) return undefined;
    return url.href.replace(/\/+$/, "");
  },
);

/** The user name of HTTP Basic has no colon. */
export const keyId = written("it must be the id of a key: letters and digits, without blanks", (text) =>
  /^[!-9;-~]{1,200}$/.test(text) ? text : undefined,
);

export const keySecret = written("it must be the secret of a key, on one line and without blanks", (text) =>
  /^[!-~]{1,1000}$/.test(text) ? text : undefined,
);

export const profileName = written(
  "it must be a name of at most 64 letters, digits and the signs . _ -",
  (text) => (/^[A-Za-z0-9][-.\w]{0,63}$/.test(text) ? text : undefined),
);

/** What is sent there leaves this machine, and everybody on the way can read it. */
export function isReadableByOthers(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname);
}

/** How people know a key: the end of its id, as the list of keys has it. The whole of it is nobody's to read. */
export function keySuffix(keyId: string): string {
  return keyId.slice(-4);
}
