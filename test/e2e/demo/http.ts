export interface Credentials {
  readonly keyId: string;
  readonly keySecret: string;
}

export interface Reply {
  readonly status: number;
  readonly requestId: string | null;
  /** Raw text, for display. */
  readonly text: string;
  readonly body: unknown;
}

/** A client of the management API. */
export class ApiCaller {
  readonly baseUrl: string;
  readonly #authorization: string;
  readonly #signal: AbortSignal;

  constructor(baseUrl: string, { keyId, keySecret }: Credentials, signal: AbortSignal) {
    this.baseUrl = baseUrl;
    this.#authorization = `Basic ${Buffer.from(`${keyId}:${keySecret}`).toString("base64")}`;
    this.#signal = signal;
  }

  get(path: string): Promise<Reply> {
    return this.#call("GET", path);
  }

  patch(path: string, body: unknown): Promise<Reply> {
    return this.#call("PATCH", path, JSON.stringify(body));
  }

  async #call(method: string, path: string, body?: string): Promise<Reply> {
    const response = await fetch(this.baseUrl + path, {
      method,
      signal: this.#signal,
      headers: {
        authorization: this.#authorization,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    return {
      status: response.status,
      requestId: response.headers.get("x-request-id"),
      text: text.trim(),
      body: parse(text),
    };
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
