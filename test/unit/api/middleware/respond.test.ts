import { expect, it } from "vitest";
import { sendResult } from "../../../../src/api/middleware/respond.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { appOf, serve } from "../../../support/servers/express-app.ts";

it.each(["Acme", "Æ", "Zürich", "株式会社", "😀"])(
  "a response that contains %s is complete and encoded in UTF-8",
  async (name) => {
    const app = appOf([(_request, response) => sendResult(response, { name })], {
      clock: new FakeClock(),
    });
    const bytes = await (await fetch(await serve(app))).arrayBuffer();
    const body = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    expect(JSON.parse(body)).toMatchObject({ status: 200, result: { name } });
  },
);
