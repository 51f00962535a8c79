import { once } from "node:events";
import { createServer } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { Answers } from "../../src/api/answers.ts";
import { openExchange } from "../../src/api/exchange.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { urlOf } from "../../src/telemetry/ops-server.ts";
import { VirtualClock } from "../gen/clock.ts";

async function answerTo(result: unknown): Promise<Buffer> {
  const clock = new VirtualClock();
  const answers = new Answers({ log: createLogger("silent", "api"), clock, draining: () => false });
  const server = createServer((request, response) => {
    answers.success(openExchange(request, response, clock.monotonic()), result);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return Buffer.from(await (await fetch(urlOf(server))).arrayBuffer());
}

it.each(["Acme", "Æ", "Zürich", "株式会社", "😀"])(
  "an answer with %s in it is UTF-8 and whole",
  async (name) => {
    const body = new TextDecoder("utf-8", { fatal: true }).decode(await answerTo({ name }));
    expect(JSON.parse(body)).toMatchObject({ status: 200, result: { name } });
  },
);
