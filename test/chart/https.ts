import { Agent, request } from "undici";

/** Returns the status of a request by a client that trusts only this certificate. */
export async function statusOver(url: string, ca: string): Promise<number> {
  const dispatcher = new Agent({ connect: { ca } });
  try {
    const { statusCode, body } = await request(`${url}/v1/organizations`, { dispatcher });
    await body.dump();
    return statusCode;
  } finally {
    await dispatcher.destroy();
  }
}
