import { isCode } from "../kube/errors.ts";

/** Waits for a call; if the API server rejects it with this status code, the result is `otherwise`. */
export async function unlessCode<T, U>(code: number, call: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await call;
  } catch (error) {
    if (isCode(error, code)) return otherwise;
    throw error;
  }
}
