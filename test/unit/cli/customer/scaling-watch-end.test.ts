import { expect, test } from "vitest";
import { done, type FakeResponse, startFakeHttpServer } from "../../../support/fakes/fake-http-server.ts";
import { runProgram } from "../../../support/terminal/program.ts";

const SERVICE = "01234567-89ab-4cde-8f01-23456789abcd";
const ORGANIZATION = { id: SERVICE, name: "Acme", createdAt: "2026-01-31T12:00:00.000Z" };
const PROGRESS = { state: "propagating", reason: "Pending", message: "On its way.", failures: [] };

const never = new Promise<FakeResponse>(() => undefined);

// Each wait is longer than the timeout of this test.
test.each([
  ["for a response", never],
  [
    "for the rate limit of its key",
    done(PROGRESS, { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60" }),
  ],
])("a process does not wait %s after its watch has timed out", async (_, later) => {
  const { url } = await startFakeHttpServer(({ path }) =>
    path === "/v1/organizations" ? done([ORGANIZATION]) : later,
  );
  const { code, err } = await runProgram(["scaling", "get", SERVICE, "--watch", "--timeout", "1s"], {
    PIPE_SCALING_API_URL: url,
    PIPE_SCALING_KEY_ID: "key1",
    PIPE_SCALING_KEY_SECRET: "tops3cret",
  });
  expect(err).toBe("The watch timed out after 1 s; the rescale continues.\n");
  expect(code).toBe(4);
});
