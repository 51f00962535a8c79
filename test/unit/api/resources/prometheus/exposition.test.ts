import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PROGRESS_STATES } from "../../../../../src/api/cluster/progress.ts";
import { toPipeScalingView } from "../../../../../src/api/cluster/views.ts";
import {
  exposition,
  labelNamesOf,
  type ObservedService,
  SERVICE_METRICS,
} from "../../../../../src/api/resources/prometheus/exposition.ts";
import type { PipeScaling, PipeScalingStatus } from "../../../../../src/crd/pipe-scaling.ts";
import { boostFields, describedSize, sizeFields } from "../../../../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../../../../src/domain/size.ts";
import { refusedAt, scaledTo } from "../../../../api/statuses.ts";
import { expositionOf } from "../../../../chart/exposition.ts";

function observed(
  name: string,
  status: PipeScalingStatus | undefined,
  spec: PipeScaling["spec"] = {},
): ObservedService {
  const metadata = { name, namespace: "pipes", uid: name, resourceVersion: "1", generation: 1 };
  const resource = { metadata, spec, ...(status ? { status: { observedGeneration: 1, ...status } } : {}) };
  return { service: { id: `id-of-${name}`, name }, scaling: toPipeScalingView(resource) };
}

const NOW_MS = Date.parse("2026-01-31T12:00:00Z");

/** The series of one service as `name` or `name{state}`, with their values. */
function seriesOf(service: ObservedService, nowMs = NOW_MS): Record<string, string> {
  const { samples } = expositionOf(exposition([service], nowMs));
  return Object.fromEntries(
    samples.map(({ name, labels, value }) => {
      const state = labels.get("state");
      expect([labels.get("service_id"), labels.get("service_name")]).toEqual([
        service.service.id,
        service.service.name,
      ]);
      const short = name.replace("pipe_scaling_service_", "");
      return [state === undefined ? short : `${short}{${state}}`, value];
    }),
  );
}

const STATES = {
  "state{propagating}": "0",
  "state{scaled}": "0",
  "state{failed}": "0",
  "state{suspended}": "0",
};

describe("the exposition of a service", () => {
  it("contains sizes, pipes, state and compute units of a scaled service", () => {
    expect(seriesOf(observed("orders", { ...scaledTo(4), replicas: 5 }))).toEqual({
      desired_cpu_cores: "4",
      desired_memory_gib: "16",
      effective_cpu_cores: "4",
      effective_memory_gib: "16",
      pipes: "3",
      updated_pipes: "3",
      failed_pipes: "0",
      ...STATES,
      "state{scaled}": "1",
      compute_units: "10",
    });
  });

  it("shows the desired and the effective size and the failures of a failed rescale", () => {
    expect(seriesOf(observed("orders", { ...refusedAt(8, 2), replicas: 1 }))).toMatchObject({
      desired_cpu_cores: "8",
      effective_cpu_cores: "2",
      updated_pipes: "1",
      failed_pipes: "1",
      ...STATES,
      "state{failed}": "1",
      compute_units: "4",
    });
  });

  it("is about the size of a boost until the boost ends, and then about the requested size", () => {
    const untilMs = NOW_MS + 3_600_000;
    const boost = boostFields({ size: sizeOfCores(16), untilMs });
    const spec = { ...sizeFields(sizeOfCores(2)), boost };
    const ofBoost = { boost: { ...boost, summary: "" }, replicas: 3 };
    const reached = observed("orders", { ...scaledTo(16), ...ofBoost }, spec);
    expect(seriesOf(reached, untilMs - 1)).toMatchObject({
      desired_cpu_cores: "16",
      desired_memory_gib: "64",
      effective_cpu_cores: "16",
      updated_pipes: "3",
      ...STATES,
      "state{scaled}": "1",
      compute_units: "24",
    });
    expect(seriesOf(reached, untilMs)).toMatchObject({
      desired_cpu_cores: "2",
      effective_cpu_cores: "16",
      updated_pipes: "0",
      ...STATES,
      "state{propagating}": "1",
      compute_units: "3",
    });
    const refused = observed("orders", { ...refusedAt(16, 2), ...ofBoost }, spec);
    expect(seriesOf(refused)).toMatchObject({ failed_pipes: "1", ...STATES, "state{failed}": "1" });
  });

  it("counts half a compute unit for a core", () => {
    expect(seriesOf(observed("orders", { ...scaledTo(1), replicas: 1 }))).toMatchObject({
      compute_units: "0.5",
    });
  });

  it("omits values that are not known yet", () => {
    const { failed_pipes, ...rest } = seriesOf(observed("orders", undefined));
    expect(failed_pipes).toBe("0");
    expect(rest).toEqual({ ...STATES, "state{propagating}": "1" });
  });

  it("shows that a service is suspended", () => {
    expect(seriesOf(observed("orders", scaledTo(2), { suspend: true }))).toMatchObject({
      ...STATES,
      "state{suspended}": "1",
    });
  });

  it("has no series without a pipe, but still describes every metric", () => {
    const { types, samples } = expositionOf(
      exposition([{ service: { id: "a", name: "b" }, scaling: undefined }], NOW_MS),
    );
    expect(samples).toEqual([]);
    expect([...types]).toEqual(SERVICE_METRICS.map(({ name }) => [name, "gauge"]));
  });
});

describe("the exposition of several services", () => {
  const text = exposition(
    [observed("a", { ...scaledTo(1), replicas: 1 }), observed("b", { ...scaledTo(2), replicas: 2 })],
    NOW_MS,
  );

  it("has the series of each metric together, after its help and its type", () => {
    const names = [...text.matchAll(/^(?:# (?:HELP|TYPE) )?([a-z_]+)/gm)].map(([, name]) => name);
    const runs = names.filter((name, index) => name !== names[index - 1]);
    expect(runs).toEqual(SERVICE_METRICS.map(({ name }) => name));
    for (const { name, help } of SERVICE_METRICS) {
      expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} gauge\n${name}{`);
    }
  });

  it("has the documented labels, and never the same series twice", () => {
    const { samples } = expositionOf(text);
    for (const metric of SERVICE_METRICS) {
      const own = samples.filter(({ name }) => name === metric.name);
      expect(own).toHaveLength(metric.byState ? 2 * PROGRESS_STATES.length : 2);
      for (const { labels } of own) expect([...labels.keys()]).toEqual(labelNamesOf(metric));
    }
    const series = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(new Set(series.map((line) => line.slice(0, line.lastIndexOf(" ")))).size).toBe(series.length);
  });
});

it("a name of a service with any characters stays within its label", () => {
  const size = describedSize(sizeOfCores(1));
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (name) => {
      const service = { id: "a", name };
      const text = exposition([{ ...observed("orders", { effective: size }), service }], NOW_MS);
      const lines = text.split("\n").filter((line) => line.startsWith("pipe_scaling_service_effective_cpu"));
      expect(lines).toHaveLength(1);
      const [, label = ""] = /service_name="((?:[^"\\]|\\.)*)"\} 1$/s.exec(lines[0] ?? "") ?? [];
      const unescaped = label.replaceAll(/\\(.)/g, (_, character) => (character === "n" ? "\n" : character));
      expect(unescaped).toBe(name);
    }),
  );
});
