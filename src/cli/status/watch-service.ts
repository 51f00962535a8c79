import type { KubeClient } from "../../kube/client.ts";
import type { Io } from "../io.ts";
import { besideOutput, follow } from "../view/follow.ts";
import type { ServiceNews } from "./service-news.ts";

/**
 * Shows how a service's rescale goes on until its outcome.
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
  const ending = new AbortController();
  try {
    const shown = isForPeople ? io : besideOutput(io);
    return await follow(shown, news.since(client, ending.signal), { timeoutMs });
  } finally {
    ending.abort();
  }
}
