import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

/** A certificate and its key, in PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** A self-signed certificate of an hour's life, for localhost, 127.0.0.1 and api.example; each call makes another one. */
export function certificatePair(commonName: string): CertificatePair {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = sequence(set(sequence(oid(2, 5, 4, 3), der(0x0c, Buffer.from(commonName)))));
  const now = Date.now();
  const signed = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    name,
    sequence(time(now - 60_000), time(now + 3_600_000)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    explicit(3, sequence(sequence(oid(2, 5, 29, 17), der(0x04, sequence(LOCALHOST, EXAMPLE, LOOPBACK))))),
  );
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign("sha256", signed, privateKey)]));
  const certificate = sequence(signed, ECDSA_WITH_SHA256, signature).toString("base64");
  const lines = certificate.match(/.{1,64}/g) ?? [];
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

// X.509 in DER (RFC 5280): each value has a tag, a length and its content.

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const size = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function set(...parts: Buffer[]): Buffer {
  return der(0x31, Buffer.concat(parts));
}

function explicit(tag: number, content: Buffer): Buffer {
  return der(0xa0 + tag, content);
}

function integer(bytes: Buffer): Buffer {
  return der(0x02, bytes);
}

function oid(first: number, second: number, ...rest: readonly number[]): Buffer {
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const septets = [value & 0x7f];
  for (let left = value >> 7; left > 0; left >>= 7) septets.unshift((left & 0x7f) | 0x80);
  return septets;
}

function time(ms: number): Buffer {
  return der(0x17, Buffer.from(new Date(ms).toISOString().replace(/^20|[-:T]|\.\d+/g, "")));
}

const ECDSA_WITH_SHA256 = sequence(oid(1, 2, 840, 10045, 4, 3, 2));
const LOCALHOST = der(0x82, Buffer.from("localhost"));
const EXAMPLE = der(0x82, Buffer.from("api.example"));
const LOOPBACK = der(0x87, Buffer.from([127, 0, 0, 1]));
