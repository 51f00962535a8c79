/** A series of a process. */
interface Sample {
  readonly name: string;
  /** Raw label values, with escapes. */
  readonly labels: ReadonlyMap<string, string>;
  readonly value: string;
}

export interface Exposition {
  /** Type of each metric, also of metrics without series. */
  readonly types: ReadonlyMap<string, string>;
  readonly samples: readonly Sample[];
}

/** Parses the text format of Prometheus. */
export function expositionOf(text: string): Exposition {
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(
    ([, name = "", type = ""]) => [name, type] as const,
  );
  const samples = [...text.matchAll(/^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/gm)].map(
    ([, name = "", labels = "", value = ""]) => ({ name, labels: labelsIn(labels), value }),
  );
  return { types: new Map(types), samples };
}

function labelsIn(text: string): ReadonlyMap<string, string> {
  return new Map(
    [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = "", value = ""]) => [name, value]),
  );
}

/**
 * Formats series for promtool with the target labels that Prometheus adds. It renames conflicting labels of a process
 * as Prometheus does. Counters have risen from 0.
 */
export function seriesInPrometheus(component: string, { types, samples }: Exposition) {
  const target = new Map([
    ["namespace", "pipe-scaling-system"],
    ["job", "release"],
    ["container", component],
    ["pod", `${component}-1`],
  ]);
  return samples.map(({ name, labels, value }) => {
    const own = [...labels].map(([label, of]) => [target.has(label) ? `exported_${label}` : label, of]);
    const all = [...target, ...own].map(([label, of]) => `${label}="${of}"`);
    const last = value === "Nan" ? "0" : value;
    const first = types.get(name) === "gauge" ? last : "0";
    return { series: `${name}{${all.join(", ")}}`, values: `${first} ${last}` };
  });
}
