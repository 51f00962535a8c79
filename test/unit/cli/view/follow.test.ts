import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EXIT_DONE, EXIT_TIMEOUT, EXIT_UNHEALTHY } from "../../../../src/cli/exit-codes.ts";
import { follow } from "../../../../src/cli/view/follow.ts";
import { poll, type Update } from "../../../../src/cli/view/poll.ts";
import { frame } from "../../../../src/cli/view/render.ts";
import type { RescaleView } from "../../../../src/cli/view/rescale-view.ts";
import { broken } from "../../../../src/cli/view/text.ts";
import { FakeClock, settled } from "../../../support/fakes/fake-clock.ts";
import { fakeIo } from "../../../support/fakes/fake-io.ts";
import { rescaleView } from "../../../support/fixtures/rescale-view.ts";
import { Screen } from "../../../support/terminal/screen.ts";

const COLUMNS = 60;

/** A terminal driver adds a carriage return to each line feed. */
function screenOf(output: string): Screen {
  return Screen.of(output.replaceAll("\n", "\r\n"), COLUMNS);
}

const scaled: RescaleView = { ...rescaleView("Done", "Done"), state: "scaled", message: "All 2 pipes run." };
const rolling: Update = { view: rescaleView("Rolling") };

/** Yields the updates, then waits forever. */
function source(...updates: readonly Update[]): () => AsyncGenerator<Update> {
  return async function* () {
    yield* updates;
    await new Promise(() => undefined);
  };
}

describe("follow on a terminal", () => {
  function live(rows: number, clock = new FakeClock()) {
    const stop = new AbortController();
    const io = fakeIo({ output: true, signal: stop.signal, columns: () => COLUMNS, rows: () => rows });
    return { clock, stop, io, screen: () => screenOf(io.written.out) };
  }

  test("leaves only the last frame on the screen", async () => {
    const anyStates = fc.array(fc.constantFrom("Waiting", "Rolling", "Done", "Failed"), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyStates, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 5, max: 30 }),
        async (views, rows) => {
          const { clock, io, screen } = live(rows);
          const last: RescaleView = { ...rescaleView(...(views.at(-1) ?? [])), state: "failed" };
          const updates = [...views.map((states) => ({ view: rescaleView(...states) })), { view: last }];
          expect(await follow(io, source(...updates), { clock })).toBe(EXIT_UNHEALTHY);
          const canvas = { columns: COLUMNS, paint: (_: string, text: string) => text };
          const lines = frame(last, clock.now(), canvas).flatMap((line) => broken(line, COLUMNS));
          // The cursor occupies a separate row.
          expect(screen().lines).toEqual(lines.slice(1 - rows));
        },
      ),
    );
  });

  test("shows a problem below the rescale until the next update", async () => {
    const { clock, io, screen } = live(20);
    const next = Promise.withResolvers<void>();
    void follow(
      io,
      async function* () {
        yield rolling;
        yield { problem: "The connection was lost. Trying again." };
        await next.promise;
        yield rolling;
        await new Promise(() => undefined);
      },
      { clock },
    );
    await settled();
    expect(screen().lines.at(-1)).toBe("The connection was lost. Trying again.");
    next.resolve();
    await settled();
    expect(screen().text).not.toContain("connection");
  });

  test("prints that it timed out below the last frame", async () => {
    const { clock, io, screen } = live(20);
    expect(await follow(io, source(rolling), { timeoutMs: 5, clock })).toBe(EXIT_TIMEOUT);
    expect(screen().text).toContain("pipe-0");
    expect(io.written.err).toBe("The watch timed out after 0 s; the rescale continues.\n");
  });

  test("rethrows the reason of an abort and errors of the source", async () => {
    const { clock, io, stop } = live(20);
    const followed = follow(io, source(rolling), { clock });
    stop.abort(new Error("Ctrl-C"));
    await expect(followed).rejects.toThrow("Ctrl-C");
    const failing = follow(
      live(20).io,
      async function* () {
        yield rolling;
        throw new Error("The service is gone.");
      },
      { clock },
    );
    await expect(failing).rejects.toThrow("The service is gone.");
  });
});

describe("follow", () => {
  test.each<[RescaleView["state"], number]>([
    ["scaled", EXIT_DONE],
    ["failed", EXIT_UNHEALTHY],
    ["suspended", EXIT_UNHEALTHY],
  ])("ends when the rescale is %s", async (state, exitCode) => {
    const updates = source(rolling, { view: { ...scaled, state } });
    expect(await follow(fakeIo(), updates, { clock: new FakeClock() })).toBe(exitCode);
  });

  test("prints nothing after it ends", async () => {
    const late = Promise.withResolvers<void>();
    const io = fakeIo();
    await follow(
      io,
      async function* () {
        yield rolling;
        await late.promise;
        yield { view: scaled };
      },
      { timeoutMs: 1, clock: new FakeClock() },
    );
    const { out } = io.written;
    late.resolve();
    await settled();
    expect(io.written.out).toBe(out);
  });

  test("prints each new line and each problem only once in a pipe", async () => {
    const io = fakeIo();
    const updates = [rolling, { problem: "Lost." }, { problem: "Lost." }, rolling, { view: scaled }];
    await follow(io, source(...updates), { clock: new FakeClock() });
    expect(io.written.out.split("\n")).toEqual([
      "0:00  orders: 1 cpu / 4 Gi → 4 cpu / 16 Gi",
      "0:00  pipe-0: Rolling",
      "0:00  propagating, 0/1 pipe: Progressing",
      "0:00  Lost.",
      "0:00  connected again",
      "0:00  scaled, 2/2 pipes: Progressing: All 2 pipes run.",
      "",
    ]);
  });
});

describe("poll", () => {
  class Transient extends Error {}

  function polled(results: readonly (RescaleView | Error)[]) {
    const left = [...results];
    const waits: number[] = [];
    const updates = poll(
      {
        async read() {
          const next = left.shift() ?? new Error("no more results");
          if (next instanceof Error) throw next;
          return { view: next };
        },
        retryAfterMs: (error) => (error instanceof Transient ? Number(error.cause ?? 0) : undefined),
        intervalMs: 1000,
        wait: async (ms) => void waits.push(ms),
      },
      new AbortController().signal,
    );
    return { updates, waits };
  }

  const view = rescaleView("Rolling");
  const lost = (retryMs = 0) => new Transient("Lost.", { cause: retryMs });

  test("reports transient errors, also of the first read, and retries with backoff", async () => {
    const { updates, waits } = polled([lost(), view, lost(), lost(), lost(7000), view, lost(), view]);
    const seen: string[] = [];
    for (let count = 0; count < 8; count += 1) {
      const { value } = await updates.next();
      seen.push("problem" in value ? value.problem : "view");
    }
    const problem = "Lost. Trying again.";
    expect(seen).toEqual([problem, "view", problem, problem, problem, "view", problem, "view"]);
    expect(waits).toEqual([1000, 1000, 1000, 2000, 7000, 1000, 1000]);
  });

  test("throws permanent errors", async () => {
    await expect(polled([new Error("gone")]).updates.next()).rejects.toThrow("gone");
    const { updates } = polled([view, new Error("gone")]);
    await updates.next();
    await expect(updates.next()).rejects.toThrow("gone");
  });
});
