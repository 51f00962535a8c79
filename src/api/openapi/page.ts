import type { ResponseBody } from "../middleware/response-body.ts";
import { type ContentPolicy, responseHeaders } from "../middleware/response-headers.ts";

export interface PageOptions {
  readonly contentType: string;
  readonly policy?: ContentPolicy;
  /** Pages of other origins may read it. */
  readonly anyOrigin?: true;
  /** Called once, at the first request that accepts it. */
  readonly gzipped: () => Buffer;
  /** Called once, at the first request of a client that does not accept gzip. */
  readonly plain: () => ResponseBody;
}

export interface Representation {
  readonly headers: readonly string[];
  readonly body: ResponseBody;
}

/** A static page or file, compressed or not, that is sent without an envelope. */
export class Page {
  readonly #options: PageOptions;
  readonly #headers: readonly string[];
  #gzipped: Representation | undefined;
  #plain: Representation | undefined;

  constructor(options: PageOptions) {
    this.#options = options;
    this.#headers = [
      ...responseHeaders(options.contentType, options.policy),
      "Vary",
      "Accept-Encoding",
      ...(options.anyOrigin ? ["Access-Control-Allow-Origin", "*"] : []),
    ];
  }

  representation(acceptEncoding = ""): Representation {
    if (acceptsGzip(acceptEncoding)) {
      const headers = [...this.#headers, "Content-Encoding", "gzip"];
      this.#gzipped ??= { headers, body: this.#options.gzipped() };
      return this.#gzipped;
    }
    this.#plain ??= { headers: this.#headers, body: this.#options.plain() };
    return this.#plain;
  }
}

/** Accepts gzip only by name and with a weight above 0 (RFC 9110, section 12.5.3). */
function acceptsGzip(acceptEncoding: string): boolean {
  return /(?:^|,)\s*gzip\s*(?:$|,|;\s*q=(?:1|0\.0{0,2}[1-9]))/i.test(acceptEncoding);
}
