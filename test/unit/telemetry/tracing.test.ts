import { createServer } from "node:http";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createLogger } from "../../../src/telemetry/log.ts";
import { urlOf } from "../../../src/telemetry/ops-server.ts";
import { requestSpanId, type Span, spanIdOf, traceIdOf } from "../../../src/telemetry/span.ts";
import { SpanRecorder } from "../../../src/telemetry/span-recorder.ts";
import { startTracing } from "../../../src/telemetry/tracing.ts";
import { startFakeCollector } from "../../support/fakes/fake-collector.ts";

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
  it("are valid OpenTelemetry ids that are derived from the request id and the work", () => {
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
    "do not exist for %j, which is not a request id of the API",
    (requestId) => expect(traceIdOf(requestId)).toBeUndefined(),
  );
});

/** Starts a recorder. @returns the recorder and the lines that it logs */
function startRecorder(endpoint: string) {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger("info", "test", { write: (line) => lines.push(JSON.parse(line)) });
  const recorder = new SpanRecorder({ endpoint, resource: { "service.name": "test" }, log });
  return { recorder, lines };
}

describe("the span recorder", () => {
  it("sends many spans in one call, with their recorded ids and times", async () => {
    const collector = await startFakeCollector();
    const { recorder, lines } = startRecorder(`${collector.url}/`);
    const id = spanIdOf(REQUEST_ID, "work");
    recorder.record(aSpan());
    recorder.record(
      aSpan({ id, parentId: requestSpanId(REQUEST_ID), kind: "internal", name: "work", failure: "why" }),
    );
    await recorder.end();
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
        traceId: "0b7f6c1e3a524d0a9c1b5f0e7a7d2c11",
        spanId: id,
        parentSpanId: "9c1b5f0e7a7d2c11",
        kind: 1,
        status: { code: 2, message: "why" },
      }),
    ]);
    expect(collector.spans[0]?.parentSpanId).toBeUndefined();
    expect(lines).toEqual([]);
  });

  it("marks the parent of a span as remote, because another process may have recorded it", async () => {
    const collector = await startFakeCollector();
    const { recorder } = startRecorder(collector.url);
    recorder.record(aSpan({ id: spanIdOf(REQUEST_ID, "work"), parentId: requestSpanId(REQUEST_ID) }));
    await recorder.end();
    const [span] = collector.spans;
    const [hasIsRemote, isRemote] = [0x100, 0x200];
    expect((span?.flags ?? 0) & (hasIsRemote | isRemote)).toBe(hasIsRemote | isRemote);
  });

  it("sends an identical span if two processes record the same work", async () => {
    const collector = await startFakeCollector();
    for (let process = 0; process < 2; process += 1) {
      const { recorder } = startRecorder(collector.url);
      recorder.record(aSpan({ id: spanIdOf(REQUEST_ID, "work"), parentId: requestSpanId(REQUEST_ID) }));
      await recorder.end();
    }
    const [first, second] = collector.spans;
    expect(first?.spanId).toBe(spanIdOf(REQUEST_ID, "work"));
    expect(second).toEqual(first);
  });

  it("omits a span with a request id that is not a valid trace id, and sends the others", async () => {
    const collector = await startFakeCollector();
    const { recorder, lines } = startRecorder(collector.url);
    recorder.record(aSpan({ requestId: "mine" }));
    recorder.record(aSpan({ name: "good" }));
    await recorder.end();
    expect(collector.spans.map(({ name }) => name)).toEqual(["good"]);
    expect(lines).toEqual([]);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 1000, Date.parse("3000-01-01T00:00:00Z")])(
    "omits a span with the time %s, which an edited annotation may contain, and sends the others",
    async (time) => {
      const collector = await startFakeCollector();
      const { recorder, lines } = startRecorder(collector.url);
      // The process has been running for longer than the smallest of these times.
      vi.spyOn(performance, "now").mockReturnValue(5000);
      onTestFinished(() => {
        vi.restoreAllMocks();
      });
      recorder.record(aSpan({ startMs: time }));
      recorder.record(aSpan({ endMs: time }));
      recorder.record(aSpan({ name: "good" }));
      await recorder.end();
      expect(collector.spans.map(({ name }) => name)).toEqual(["good"]);
      expect(lines).toEqual([]);
    },
  );

  it("sends a span that ends before its start, because clocks differ, with a duration of 0", async () => {
    const collector = await startFakeCollector();
    const { recorder, lines } = startRecorder(collector.url);
    recorder.record(aSpan({ startMs: 1_780_000_002_000, endMs: 1_780_000_001_000 }));
    await recorder.end();
    expect(collector.spans).toEqual([
      expect.objectContaining({ startMs: 1_780_000_002_000, endMs: 1_780_000_002_000 }),
    ]);
    expect(lines).toEqual([]);
  });

  it("sends the headers of OTEL_EXPORTER_OTLP_HEADERS", async () => {
    vi.stubEnv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20token");
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const collector = await startFakeCollector();
    const { recorder } = startRecorder(collector.url);
    recorder.record(aSpan());
    await recorder.end();
    expect(collector.authorizations).toEqual(["Bearer token"]);
  });

  it("logs the number of spans that the collector rejects", async () => {
    const collector = await startFakeCollector(400);
    const { recorder, lines } = startRecorder(collector.url);
    recorder.record(aSpan());
    recorder.record(aSpan());
    await recorder.end();
    expect(lines).toEqual([
      expect.objectContaining({
        level: "warn",
        spans: 2,
        err: expect.objectContaining({ message: "Bad Request" }),
        msg: expect.stringContaining("spans were lost"),
      }),
    ]);
  });

  it("logs the reason if the collector rejects some spans of a batch that it accepts", async () => {
    const partialSuccess = { rejectedSpans: 1, errorMessage: "too old" };
    const collector = await startFakeCollector(200, { partialSuccess });
    const { recorder, lines } = startRecorder(collector.url);
    recorder.record(aSpan());
    await recorder.end();
    expect(lines).toEqual([
      expect.objectContaining({ level: "warn", detail: expect.stringContaining("too old") }),
    ]);
  });

  it("drops and logs spans when its queue is full because the collector does not respond, and ends within seconds", async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const { recorder, lines } = startRecorder(urlOf(server));
    for (let at = 0; at < 10_000; at += 1) recorder.record(aSpan());
    const lost = () => lines.reduce((sum, { spans }) => sum + Number(spans ?? 0), 0);
    // The timeout of the first batch makes room in the queue for the next span.
    await waitFor(() => lost() > 0, { what: "the first batch to time out" });
    recorder.record(aSpan());
    expect(lines).toContainEqual(
      expect.objectContaining({ level: "warn", detail: expect.stringMatching(/^Dropped 5\d+ spans/) }),
    );
    const start = performance.now();
    await recorder.end();
    expect(performance.now() - start).toBeLessThan(30_000);
    expect(lost()).toBeLessThan(6000);
  });

  it("logs lost spans and ends if it cannot connect to the collector", async () => {
    // A documentation address: no host responds there, or the network rejects it immediately.
    const { recorder, lines } = startRecorder("http://192.0.2.1:4318");
    recorder.record(aSpan());
    // The batch timer sends the span, so that no span is left at the end.
    await waitFor(() => lines.length > 0, { what: "the span to be lost" });
    recorder.record(aSpan());
    await recorder.end();
  });
});

describe("tracing", () => {
  it("is disabled without a collector", async () => {
    const tracing = await startTracing({}, "test", "one", createLogger("silent", "test"));
    expect(tracing.recordSpan).toBeUndefined();
    await tracing.end();
  });

  it("sends spans with the given service name", async () => {
    const collector = await startFakeCollector();
    const log = createLogger("silent", "test");
    const tracing = await startTracing({ otlpEndpoint: collector.url }, "the-service", "one", log);
    tracing.recordSpan?.(aSpan());
    await tracing.end();
    expect(collector.spans).toEqual([expect.objectContaining({ service: "the-service" })]);
  });
});
