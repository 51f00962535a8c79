import { gunzipSync } from "node:zlib";
import { type ContentPolicy, responseHeaders } from "../middleware/response-headers.ts";

export interface PageOptions {
  readonly contentType: string;
  readonly policy?: ContentPolicy;
  /** Called once, at the first request. */
  readonly gzipped: () => Buffer;
}

export interface Representation {
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** A static file, kept compressed, that is sent without an envelope. */
export class Page {
  readonly #headers: readonly string[];
  readonly #read: () => Buffer;
  #gzipped: Representation | undefined;
  #plain: Representation | undefined;

  constructor({ contentType, policy, gzipped }: PageOptions) {
    this.#headers = [...responseHeaders(contentType, policy), "Vary", "Accept-Encoding"];
    this.#read = gzipped;
  }

  representation(acceptEncoding = ""): Representation {
    const headers = [...this.#headers, "Content-Encoding", "gzip"];
    this.#gzipped ??= { headers, body: this.#read() };
    if (acceptsGzip(acceptEncoding)) return this.#gzipped;
    this.#plain ??= { headers: this.#headers, body: gunzipSync(this.#gzipped.body) };
    return this.#plain;
  }
}

/** Accepts gzip only by name and with a weight above 0 (RFC 9110, section 12.5.3). */
function acceptsGzip(acceptEncoding: string): boolean {
  return /(?:^|,)\s*gzip\s*(?:$|,|;\s*q=(?:1|0\.0{0,2}[1-9]))/i.test(acceptEncoding);
}
