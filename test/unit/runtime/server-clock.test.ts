import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ServerClock } from "../../../src/runtime/server-clock.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A little more than a watch takes until it begins again. */
const LONG_MS = 21 * MINUTE_MS;

/** A machine with a wrong wall clock, and an API server with a correct clock. */
function setup(errorMs: number) {
  const base = new FakeClock();
  const startMs = base.now();
  base.jump(errorMs);
  const corrections: number[] = [];
  const clock = new ServerClock(base, (correctionMs) => corrections.push(correctionMs));
  let steppedMs = 0;
  const serverTime = () => startMs + steppedMs + base.monotonic();
  /** Sets the clock of the API server. */
  const step = (ms: number) => {
    steppedMs += ms;
  };
  /** Makes one call whose request and response take this long. */
  const call = async ({ requestMs = 1, responseMs = 1, code = 200 } = {}) => {
    await base.advance(requestMs);
    const date = Math.floor(serverTime() / 1000) * 1000;
    await base.advance(responseMs);
    clock.observe({ code, date, seconds: (requestMs + responseMs) / 1000 });
  };
  /** Calls every two seconds, like the renewal of a lease. */
  const callFor = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 2000) {
      await base.advance(1998);
      await call();
    }
  };
  return { base, clock, corrections, step, call, callFor, errorOf: () => clock.now() - serverTime() };
}

describe("a clock that follows the clock of the API server", () => {
  it.each([
    ["behind", -HOUR_MS],
    ["ahead", HOUR_MS],
  ])("is correct after one response if the machine's clock is an hour %s", async (_, errorMs) => {
    const { base, call, errorOf } = setup(errorMs);
    expect(errorOf()).toBe(errorMs);
    await call();
    expect(Math.abs(errorOf())).toBeLessThanOrEqual(501);
    await base.advance(HOUR_MS);
    expect(Math.abs(errorOf())).toBeLessThanOrEqual(501);
  });

  it("is the machine's own clock if the two differ by less than two seconds", async () => {
    const { base, clock, call } = setup(1900);
    for (let second = 0; second < 10; second += 1) await call({ requestMs: 700, responseMs: 200 });
    expect(clock.now()).toBe(base.now());
  });

  it("does not follow later jumps of the machine's clock", async () => {
    const { base, call, errorOf } = setup(0);
    await call();
    for (const jumpMs of [HOUR_MS, -5 * HOUR_MS]) {
      base.jump(jumpMs);
      expect(errorOf()).toBe(0);
      await call();
      expect(errorOf()).toBe(0);
    }
  });

  it("ignores a response without a date", () => {
    const { clock, errorOf } = setup(HOUR_MS);
    clock.observe({ code: 200, date: undefined, seconds: 0.1 });
    expect(errorOf()).toBe(HOUR_MS);
  });

  it("reports only the first correction of more than a minute", async () => {
    const small = setup(59_000);
    await small.call();
    expect(small.corrections).toEqual([]);
    const large = setup(-HOUR_MS);
    await large.call();
    await large.call();
    large.step(-HOUR_MS);
    await large.callFor(14_000);
    expect(Math.abs(large.errorOf())).toBeLessThanOrEqual(501);
    expect(large.corrections).toHaveLength(1);
    expect(Math.abs((large.corrections[0] ?? 0) - HOUR_MS)).toBeLessThan(1000);
  });

  it("calls back after each correction forward, however small, and after no other response", async () => {
    const { base, clock, step, call, callFor } = setup(0);
    const times: number[] = [];
    clock.onSetForward(() => times.push(clock.now()));
    const counts: number[] = [];
    for (const ms of [0, 1000, 4000, 0, HOUR_MS, -HOUR_MS, 4000]) {
      step(ms);
      if (Math.abs(ms) === HOUR_MS) {
        await callFor(LONG_MS);
        await base.advance(2000);
      }
      const before = clock.now();
      await call();
      if (times.length > (counts.at(-1) ?? 0)) expect(times.at(-1)).toBeGreaterThan(before + 2500);
      counts.push(times.length);
    }
    expect(counts).toEqual([0, 0, 1, 1, 2, 2, 3]);
  });

  it.each([
    ["is ahead", HOUR_MS],
    ["is behind", -HOUR_MS],
  ])("does not follow one of several API servers whose clock %s by an hour", async (_, errorMs) => {
    const { base, clock, step, call, callFor } = setup(0);
    await call();
    for (let time = 0; time < 20; time += 1) {
      step(errorMs);
      await callFor(8000);
      step(-errorMs);
      await callFor(2000);
    }
    expect(clock.now()).toBe(base.now());
  });

  it.each([
    ["is ahead", HOUR_MS],
    ["is behind", -HOUR_MS],
  ])(
    "does not follow an API server whose clock %s by an hour while only watches reach another one",
    async (_, errorMs) => {
      const { base, clock, step, call, callFor } = setup(0);
      await call();
      for (let time = 0; time < 3; time += 1) {
        step(errorMs);
        await callFor(20 * MINUTE_MS);
        step(-errorMs);
        await call();
      }
      expect(clock.now()).toBe(base.now());
    },
  );

  it.each([
    ["is ahead", HOUR_MS],
    ["is behind", -HOUR_MS],
  ])(
    "is correct as soon as one response agrees with the machine if the first one came from a server whose clock %s by an hour",
    async (_, errorMs) => {
      const { base, clock, step, call, callFor } = setup(500);
      const differenceMs = () => Math.abs(clock.now() - base.now());
      step(errorMs);
      await callFor(20_000);
      expect(differenceMs()).toBeGreaterThan(HOUR_MS - 2000);
      for (let time = 0; time < 20; time += 1) {
        step(-errorMs);
        await call();
        expect(differenceMs()).toBeLessThanOrEqual(1500);
        step(errorMs);
        await callFor(MINUTE_MS);
        expect(differenceMs()).toBeLessThanOrEqual(1500);
      }
    },
  );

  it("does not follow a response that agrees with the machine at once after another one has", async () => {
    const { base, step, call, errorOf } = setup(HOUR_MS);
    await call();
    base.jump(-HOUR_MS);
    await call();
    base.jump(HOUR_MS);
    step(HOUR_MS);
    await call();
    step(-HOUR_MS);
    expect(Math.abs(errorOf())).toBeLessThanOrEqual(501);
  });

  it("does not follow another wrong server although no response has agreed with the machine", async () => {
    const { step, call, callFor, errorOf } = setup(-HOUR_MS);
    await call();
    step(HOUR_MS);
    await callFor(20 * MINUTE_MS);
    step(-HOUR_MS);
    expect(Math.abs(errorOf())).toBeLessThanOrEqual(501);
  });

  it.each([HOUR_MS, -HOUR_MS])(
    "follows after 21 minutes if the clock of every API server is set by %i ms",
    async (ms) => {
      const { step, call, callFor, errorOf } = setup(0);
      await call();
      step(ms);
      await callFor(LONG_MS);
      expect(errorOf()).toBe(-ms);
      await callFor(2000);
      expect(Math.abs(errorOf())).toBeLessThanOrEqual(501);
    },
  );

  it.each([HOUR_MS, -HOUR_MS])(
    "follows after ten seconds if the clock of the machine is set by %i ms, too, as after its suspension",
    async (ms) => {
      const { base, step, call, callFor, errorOf } = setup(0);
      await call();
      step(ms);
      base.jump(ms);
      await callFor(10_000);
      expect(errorOf()).toBe(-ms);
      await callFor(2000);
      expect(Math.abs(errorOf())).toBeLessThanOrEqual(501);
    },
  );

  it.each([8000, -8000])("also if the clock of the machine then differs by %i ms", async (ms) => {
    const { base, step, call, callFor, errorOf } = setup(0);
    await call();
    step(HOUR_MS);
    base.jump(HOUR_MS + ms);
    await callFor(12_000);
    expect(Math.abs(errorOf())).toBeLessThanOrEqual(501);
  });

  it.each<[string, number, (server: ReturnType<typeof setup>) => unknown]>([
    ["a slow call shows the time only roughly", 5000, ({ call }) => call({ requestMs: 9000 })],
    ["it then runs too fast", 2000, ({ step }) => step(1000)],
  ])(
    "follows after 21 minutes a clock that was set by an hour although %s",
    async (_, mostMs, eachMinute) => {
      const server = setup(0);
      await server.call();
      server.step(HOUR_MS);
      for (let minute = 0; minute <= 21; minute += 1) {
        await server.callFor(MINUTE_MS);
        await eachMinute(server);
      }
      expect(Math.abs(server.errorOf())).toBeLessThanOrEqual(mostMs);
    },
  );

  it("counts the 21 minutes again if two wrong clocks differ", async () => {
    const { base, clock, step, call, callFor } = setup(0);
    await call();
    for (const ms of [HOUR_MS, HOUR_MS, HOUR_MS]) {
      step(ms);
      await callFor(LONG_MS);
    }
    expect(clock.now()).toBe(base.now());
  });

  it.each([500, 502, 504])("ignores a response %i, which a proxy may have made", async (code) => {
    const { base, clock, step, call } = setup(HOUR_MS);
    await call({ code });
    expect(clock.now()).toBe(base.now());
    step(10_000);
    await call({ code });
    expect(clock.now()).toBe(base.now());
  });

  it("measures and waits with the machine's own monotonic clock", async () => {
    const { base, clock, call } = setup(HOUR_MS);
    await call();
    let isOver = false;
    clock.after(1000, () => {
      isOver = true;
    });
    const before = clock.monotonic();
    await base.advance(1000);
    expect([isOver, clock.monotonic() - before]).toEqual([true, 1000]);
  });

  const latency = fc.integer({ min: 0, max: 2000 });
  const step = fc.oneof(
    fc.record({ type: fc.constant("call" as const), requestMs: latency, responseMs: latency }),
    fc.record({
      type: fc.constant("jump" as const),
      ms: fc.integer({ min: -10 * HOUR_MS, max: 10 * HOUR_MS }),
    }),
    fc.record({ type: fc.constant("wait" as const), ms: fc.integer({ min: 0, max: HOUR_MS }) }),
  );

  it("differs from the server's clock by at most 7 s, for any error and any jumps of the machine's clock", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: -10 * HOUR_MS, max: 10 * HOUR_MS }),
        fc.array(step, { maxLength: 30 }),
        async (errorMs, steps) => {
          const { base, call, errorOf } = setup(errorMs);
          await call();
          for (const each of steps) {
            if (each.type === "call") await call(each);
            else if (each.type === "jump") base.jump(each.ms);
            else await base.advance(each.ms);
            // 2 s of tolerance, 1 s for the precision of the header, and 4 s for the slowest call.
            expect(Math.abs(errorOf())).toBeLessThanOrEqual(7000);
          }
        },
      ),
    );
  });

  it("never corrects a correct machine clock, even if calls are slow", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: -1999, max: 1999 }),
        fc.array(fc.record({ requestMs: latency, responseMs: latency })),
        async (errorMs, calls) => {
          const { base, clock, call } = setup(errorMs);
          for (const each of calls) await call(each);
          expect(clock.now()).toBe(base.now());
        },
      ),
    );
  });
});
