/** Requests that a load sends. */
export interface Callers {
  /** Authorization headers, used in turn so that no key reaches its rate limit. */
  readonly authorizations: readonly string[];
  /** Paths, used in turn. */
  readonly paths: readonly string[];
  /** Every n-th request has invalid credentials; 0 for none. */
  readonly strangerEach: number;
}

/** Generates requests without end: the same ones in turn, and among them requests with unique invalid credentials. */
export function requestsOf({ authorizations, paths, strangerEach }: Callers): () => string | Buffer {
  const known = authorizations.flatMap((authorization) =>
    paths.map((path) => Buffer.from(get(path, { Authorization: authorization }))),
  );
  const [path = "/"] = paths;
  let count = 0;
  return () => {
    count += 1;
    if (strangerEach > 0 && count % strangerEach === 0) return stranger(path, count / strangerEach);
    return known[count % known.length] ?? "";
  };
}

/** Returns a request with unique invalid credentials, from a network of its own (an IPv6 /64). */
function stranger(path: string, number: number): string {
  const credentials = Buffer.from(`stranger-${number}:${number}`).toString("base64");
  return get(path, {
    Authorization: `Basic ${credentials}`,
    "X-Forwarded-For": `2001:db8:${hex(number >> 16)}:${hex(number)}::1`,
  });
}

function hex(number: number): string {
  return (number & 0xffff).toString(16);
}

function get(path: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\nHost: bench\r\n${lines.join("")}\r\n`;
}
