import * as z from "zod";

const EVALUATION = 1;

const answerSchema = z.object({
  id: z.literal(EVALUATION),
  result: z.object({ result: z.object({ value: z.unknown() }) }),
});

/**
 * Evaluates an expression in another process by the protocol of Node's inspector, after a full collection of
 * garbage if that is wanted.
 *
 * It is connected only for so long, between measurements: the process is the one that is shipped, and nothing
 * is in it for the benchmark's sake.
 *
 * @param url of the process's inspector, as it says it on standard error
 */
export function evaluate(url: string, expression: string, { collect = false } = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    const send = (message: object) => socket.send(JSON.stringify(message));
    socket.addEventListener("open", () => {
      if (collect) send({ id: 0, method: "HeapProfiler.collectGarbage" });
      send({ id: EVALUATION, method: "Runtime.evaluate", params: { expression, returnByValue: true } });
    });
    socket.addEventListener("message", ({ data }) => {
      const answer = answerSchema.safeParse(JSON.parse(String(data)));
      if (!answer.success) return;
      resolve(answer.data.result.result.value);
      socket.close();
    });
    socket.addEventListener("error", () => reject(new Error(`the inspector at ${url} does not answer`)));
    socket.addEventListener("close", () => reject(new Error(`the inspector at ${url} gave no answer`)));
  });
}
