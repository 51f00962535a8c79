import type { IncomingMessage } from "node:http";
import { MIMEType } from "node:util";
import { parse } from "lossless-json";
import type * as z from "zod";
import { describeFindings, quote } from "./findings.ts";
import { timesSent } from "./http-syntax.ts";
import { invalid, Problem } from "./problem.ts";

const LIMIT_BYTES = 65_536;

export const MEDIA_TYPES = ["application/json", "application/merge-patch+json"];

/**
 * A request's body, validated.
 *
 * @throws Problem 415, 413, 400, in this order
 */
export async function readBody<T>(request: IncomingMessage, schema: z.ZodType<T>): Promise<T> {
  if (!announcesBody(request)) throw invalid("The request must have a body, a JSON object.");
  requireJsonType(request);
  return validate(decodeJson(await receive(request)), schema);
}

/** Without any bytes there is nothing whose type could be wrong. */
function announcesBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function requireJsonType(request: IncomingMessage): void {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    throw unsupported("The body must not be compressed.");
  }
  if (timesSent(request, "content-type") !== 1 || !isJson(request.headers["content-type"] ?? "")) {
    throw unsupported(`The body's Content-Type must be ${MEDIA_TYPES.join(" or ")}, in UTF-8.`);
  }
}

function isJson(contentType: string): boolean {
  let type: MIMEType;
  try {
    type = new MIMEType(contentType);
  } catch {
    return false;
  }
  const charset = type.params.get("charset") ?? "utf-8";
  return MEDIA_TYPES.includes(type.essence) && charset.toLowerCase() === "utf-8";
}

function unsupported(message: string): Problem {
  return new Problem(415, message, { headers: ["Accept-Patch", MEDIA_TYPES.join(", ")] });
}

/** The raw bytes. What is too long is let run to its end unread, so that the client can read the answer. */
function receive(request: IncomingMessage): Promise<Buffer> {
  const tooLong = new Problem(413, `The body must not be longer than ${LIMIT_BYTES} bytes.`);
  if (Number(request.headers["content-length"] ?? 0) > LIMIT_BYTES) return Promise.reject(tooLong);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const take = (chunk: Buffer) => {
      length += chunk.length;
      if (length <= LIMIT_BYTES) {
        chunks.push(chunk);
        return;
      }
      request.off("data", take);
      request.resume();
      reject(tooLong);
    };
    request.on("data", take);
    request.once("end", () => resolve(Buffer.concat(chunks)));
    request.once("error", (cause) => reject(invalid("The request's body broke off.", cause)));
  });
}

/**
 * JSON by the letter: UTF-8 without a byte order mark, and a key that comes twice with different values is
 * an error, because two readers of such a body would act on different ones.
 *
 * @throws Problem 400
 */
export function decodeJson(bytes: Buffer): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw invalid("The body is not UTF-8.", cause);
  }
  try {
    return parse(text, null, {
      parseNumber: Number,
      onDuplicateKey: ({ key }) => {
        throw new SyntaxError(`the key ${quote(key)} comes twice, with different values`);
      },
    });
  } catch (cause) {
    if (cause instanceof RangeError) throw invalid("The body is nested too deeply.", cause);
    throw invalid(`The body is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}

/** @throws Problem 400 that names the fields and the rules */
export function validate<T>(value: unknown, schema: z.ZodType<T>): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw invalid(describeFindings(result.error));
}
