import { written } from "../../settings/values.ts";

/*
 * Values of a profile, as people write them.
 */

/** Can have a base path; the paths of the operations, which begin with /v1, follow it. */
export const apiUrl = written(
  "it must be the address of an API, such as https://api.example.com, without /v1 at its end and without a user",
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) return undefined;
    const { username, password, search, hash, pathname } = url;
    if (username || password || search || hash || /\/v1\/?$/.test(pathname)) return undefined;
    return url.href.replace(/\/+$/, "");
  },
);

/** The user name of HTTP Basic has no colon. */
export const keyId = written(
  "it must be the ID of a key: printable ASCII characters, without spaces and colons",
  (text) => (/^[!-9;-~]{1,200}$/.test(text) ? text : undefined),
);

export const keySecret = written(
  "it must be printable ASCII characters, on one line and without spaces",
  (text) => (/^[!-~]{1,1000}$/.test(text) ? text : undefined),
);

export const profileName = written(
  "it must be a name of at most 64 letters, digits and the signs . _ -",
  (text) => (/^[A-Za-z0-9][-.\w]{0,63}$/.test(text) ? text : undefined),
);
