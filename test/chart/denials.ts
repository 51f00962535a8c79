import { expect } from "vitest";
import type { KubeClient, KubeRequest } from "../../src/kube/client.ts";
import { KubeApiError } from "../../src/kube/errors.ts";

/** Returns "accepted" or the error of a request, whose changes the API server does not store. */
export function dryRunOf(client: KubeClient, request: KubeRequest): Promise<string> {
  return outcomeOf(client.json({ ...request, query: { dryRun: "All", ...request.query } }));
}

/** Returns "accepted" or the error of a call. */
export async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "accepted";
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    return `${error.code} ${error.message}`;
  }
}

/** @param sentence part of the message of the policy */
export function expectDenied(text: string, sentence: string): void {
  expect(text).toMatch(/^422 .*ValidatingAdmissionPolicy/s);
  expect(text).toContain(sentence);
}
