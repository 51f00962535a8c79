import { gunzipSync } from "node:zlib";
import { answerHeaders, type ContentPolicy } from "./security-headers.ts";

export interface PageOptions {
  /** For the log and the metrics. */
  readonly route: string;
  readonly contentType: string;
  readonly policy?: ContentPolicy;
  /** Called once, when the page is asked for first. */
  readonly gzipped: () => Buffer;
}

export interface Representation {
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** Something to read that is the same for everybody and is answered as it is, without an envelope. */
export class Page {
  readonly route: string;
  readonly #headers: readonly string[];
  readonly #read: () => Buffer;
  #gzipped: Representation | undefined;
  #plain: Representation | undefined;

  constructor({ route, contentType, policy, gzipped }: PageOptions) {
    this.route = route;
    this.#headers = [...answerHeaders(contentType, policy), "Vary", "Accept-Encoding"];
    this.#read = gzipped;
  }

  representation(acceptEncoding = ""): Representation {
    const headers = [...this.#headers, "Content-Encoding", "gzip"];
    this.#gzipped ??= { headers, body: this.#read() };
    if (takesGzip(acceptEncoding)) return this.#gzipped;
    this.#plain ??= { headers: this.#headers, body: gunzipSync(this.#gzipped.body) };
    return this.#plain;
  }
}

/** By name, and not with a weight of 0 (RFC 9110, section 12.5.3). */
function takesGzip(acceptEncoding: string): boolean {
  return /(?:^|,)\s*gzip\s*(?:$|,|;\s*q=(?:1|0\.0{0,2}[1-9]))/i.test(acceptEncoding);
}
