import { createServer } from "node:http";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createLogger } from "../../src/telemetry/log.ts";
import { requestSpanId, type Span, spanIdOf, traceIdOf } from "../../src/telemetry/span.ts";
import { SpanSender } from "../../src/telemetry/span-sender.ts";
import { startTracing } from "../../src/telemetry/tracing.ts";
import { waitFor } from "../cluster/wait.ts";
import { startCollector } from "../gen/collector.ts";

const REQUEST_ID = "0b7f6c1e-3a52-4d0a-9c1b-5f0e7a7d2c11";

function aSpan(changes: Partial<Span> = {}): Span {
  return {
    requestId: REQUEST_ID,
    id: requestSpanId(REQUEST_ID),
    parentId: undefined,
    kind: "server",
    name: "PATCH",
    startMs: 1_780_000_000_123,
    endMs: 1_780_000_000_456.5,
    attributes: { "http.response.status_code": 200 },
    ...changes,
  };
}

describe("the ids of a trace", () => {
  it("are those of OpenTelemetry, whatever the request id", () => {
    fc.assert(
      fc.property(fc.uuid({ version: 4 }), fc.string(), (requestId, work) => {
        expect(traceIdOf(requestId)).toBe(requestId.replaceAll("-", ""));
        for (const id of [requestSpanId(requestId), spanIdOf(requestId, work)]) {
          expect(id).toMatch(/^[0-9a-f]{16}$/);
          expect(id).not.toMatch(/^0+$/);
        }
        expect(spanIdOf(requestId, work)).toBe(spanIdOf(requestId, work));
        expect(spanIdOf(requestId, work)).not.toBe(spanIdOf(requestId, `${work}.`));
      }),
    );
  });

  it.each(["", "mine", "0B7F6C1E-3A52-4D0A-9C1B-5F0E7A7D2C11", "00000000-0000-0000-0000-000000000000"])(
    "are none for a request id that the API does not make: %j",
    (requestId) => expect(traceIdOf(requestId)).toBeUndefined(),
  );
});

describe("spans", () => {
  function sender(endpoint: string) {
    const lost: number[] = [];
    const errors: unknown[] = [];
    const sender = new SpanSender({
      endpoint,
      resource: { "service.name": "test" },
      onLost: (spans, error) => {
        lost.push(spans);
        errors.push(error);
      },
    });
    return { sender, lost, errors };
  }

  it("reach the collector as they are, many in one call", async () => {
    const collector = await startCollector();
    const { sender: sending, lost } = sender(`${collector.url}/`);
    const id = spanIdOf(REQUEST_ID, "work");
    sending.tell(aSpan());
    sending.tell(
      aSpan({ id, parentId: requestSpanId(REQUEST_ID), kind: "internal", name: "work", failure: "why" }),
    );
    // Of a request that made no trace.
    sending.tell(aSpan({ requestId: "mine" }));
    await sending.end();
    expect(collector.authorizations).toHaveLength(1);
    expect(collector.spans).toEqual([
      expect.objectContaining({
        service: "test",
        traceId: "0b7f6c1e3a524d0a9c1b5f0e7a7d2c11",
        spanId: "9c1b5f0e7a7d2c11",
        name: "PATCH",
        kind: 2,
        startMs: 1_780_000_000_123,
        endMs: 1_780_000_000_456,
        attributes: { "http.response.status_code": 200, "pipe_scaling.request_id": REQUEST_ID },
        status: { code: 0 },
      }),
      expect.objectContaining({
        spanId: id,
        parentSpanId: "9c1b5f0e7a7d2c11",
        kind: 1,
        status: { code: 2, message: "why" },
      }),
    ]);
    expect(lost).toEqual([]);
  });

  it("that would end before they began end when they began: clocks differ", async () => {
    const collector = await startCollector();
    const { sender: sending } = sender(collector.url);
    sending.tell(aSpan({ startMs: 2000, endMs: 1000 }));
    await sending.end();
    expect(collector.spans).toEqual([expect.objectContaining({ startMs: 2000, endMs: 2000 })]);
  });

  it("that have no time, as an edited annotation may leave them, are left out, and the others are not lost", async () => {
    const collector = await startCollector();
    const { sender: sending, lost } = sender(collector.url);
    for (const startMs of [Number.NaN, -1]) sending.tell(aSpan({ startMs }));
    sending.tell(aSpan({ name: "good" }));
    await sending.end();
    expect(collector.spans.map(({ name }) => name)).toEqual(["good"]);
    expect(lost).toEqual([]);
  });

  it("go with the headers that the usual variable names", async () => {
    vi.stubEnv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20token");
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const collector = await startCollector();
    const { sender: sending } = sender(collector.url);
    sending.tell(aSpan());
    await sending.end();
    expect(collector.authorizations).toEqual(["Bearer token"]);
  });

  it("that a collector refuses are lost, and that is told", async () => {
    const collector = await startCollector(400);
    const { sender: sending, lost, errors } = sender(collector.url);
    sending.tell(aSpan());
    sending.tell(aSpan());
    await sending.end();
    expect(lost).toEqual([2]);
    expect(String(errors[0])).toContain("Bad Request");
  });

  it("beyond what can wait are dropped, whatever the collector does", async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const { sender: sending, lost } = sender(`http://127.0.0.1:${port}`);
    for (let at = 0; at < 10_000; at += 1) sending.tell(aSpan());
    await sending.end();
    expect(lost.reduce((sum, each) => sum + each, 0)).toBeLessThan(6000);
  });

  it("are lost, and told to be, also where no connection is made, and the end comes all the same", async () => {
    // Of the addresses for documentation: nobody answers there, or the network says so at once.
    const { sender: sending, lost } = sender("http://192.0.2.1:4318");
    sending.tell(aSpan());
    // Sent by itself, so that the end finds nothing to send.
    await waitFor(() => lost.length > 0, { what: "the span to be lost" });
    sending.tell(aSpan());
    await sending.end();
  });
});

describe("tracing", () => {
  it("is off without a collector", async () => {
    const tracing = await startTracing({}, "test", "one", createLogger("silent", "test"));
    expect(tracing.tell).toBeUndefined();
    await tracing.end();
  });

  it("tells in the log what was lost", async () => {
    const collector = await startCollector(403);
    const lines: string[] = [];
    const log = createLogger("info", "test", { write: (line) => lines.push(line) });
    const tracing = await startTracing({ otlpEndpoint: collector.url }, "test", "one", log);
    tracing.tell?.(aSpan());
    await tracing.end();
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ level: "warn", spans: 1, msg: expect.stringContaining("spans were lost") }),
    ]);
  });
});
