import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { z } from "zod";

export interface ApiResponse {
  readonly status: number;
  readonly body: string;
}

/**
 * Calls the API server with the administrator's certificate, on a new connection. For the few calls that prepare a
 * cluster.
 *
 * Rejects if there is no response. Resolves with any response, including an error.
 */
export function adminCall(
  cluster: { readonly dir: string; readonly server: string },
  method: "GET" | "POST",
  path: string,
  body?: unknown,
): Promise<ApiResponse> {
  const pki = (file: string) => readFileSync(join(cluster.dir, "pki", file));
  return new Promise((resolve, reject) => {
    const call = request(
      new URL(path, cluster.server),
      {
        method,
        agent: false,
        ca: pki("ca.crt"),
        cert: pki("admin.crt"),
        key: pki("admin.key"),
        headers: { "content-type": "application/json", accept: "application/json" },
        timeout: 10_000,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () => {
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
        });
      },
    );
    call.once("timeout", () => call.destroy(new Error(`no response to ${method} ${path} within 10 s`)));
    call.once("error", reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const statusSchema = z.object({ message: z.string() });

/** Describes a response that is not a success: its status and message. */
export function explain({ status, body }: ApiResponse): string {
  const parsed = statusSchema.safeParse(parseJson(body));
  return `${status} ${parsed.success ? parsed.data.message : body.slice(0, 500)}`;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
