import * as z from "zod";

const EVALUATION = 1;

const answerSchema = z.object({
  id: z.literal(EVALUATION),
  result: z.object({ result: z.object({ value: z.unknown() }) }),
});

/**
 * Evaluates an expression in another process through Node's inspector, optionally after a full garbage collection. The
 * connection exists only for the evaluation, between measurements. The measured process needs no code for benchmarks.
 *
 * @param url of the inspector, which the process prints on standard error
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
      const response = answerSchema.safeParse(JSON.parse(String(data)));
      if (!response.success) return;
      resolve(response.data.result.result.value);
      socket.close();
    });
    socket.addEventListener("error", () => reject(new Error(`the inspector at ${url} does not respond`)));
    socket.addEventListener("close", () => reject(new Error(`the inspector at ${url} gave no response`)));
  });
}
