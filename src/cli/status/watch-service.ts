import type { KubeClient } from "../../kube/client.ts";
import { EXIT_NOT_WELL } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { follow } from "../view/follow.ts";
import { nextSteps } from "./next-steps.ts";
import type { ServiceNews } from "./service-news.ts";

/**
 * Shows how a service's rescale goes on until its outcome, and says what to do about a bad one.
 *
 * @param isForPeople standard output is theirs; else it is left to who prints the outcome
 * @returns the exit code
 */
export async function watchService(
  io: Io,
  isForPeople: boolean,
  client: KubeClient,
  news: ServiceNews,
  timeoutMs: number | undefined,
): Promise<number> {
  const { err, signal, terminal } = io;
  const shown = isForPeople ? io : { out: err, err, signal, terminal: { ...terminal, output: false } };
  const ending = new AbortController();
  try {
    const exitCode = await follow(shown, news.since(client, ending.signal), { timeoutMs });
    const steps = exitCode === EXIT_NOT_WELL && news.latest ? nextSteps(news.latest) : [];
    for (const step of steps) err(`${step}\n`);
    return exitCode;
  } finally {
    ending.abort();
  }
}
