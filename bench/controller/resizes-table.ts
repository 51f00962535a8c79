import { median } from "../statistics.ts";
import { table } from "../table.ts";
import { type RequestCounts, sumOf, writesOf } from "./request-counts.ts";
import type { Resized, Resizes, Way } from "./resizes.ts";
import type { StartsWithPods } from "./start-with-pods.ts";

/** Writes that only the controller makes, even if Deployments roll out in the cluster. */
const OWN_WRITES = [
  "PATCH deployments",
  "PATCH pods/resize",
  "PATCH replicasets",
  "DELETE replicasets",
  "PATCH pipescalings/status",
];

interface Row {
  readonly what: string;
  readonly value: (resized: Resized, pipes: number) => number;
  readonly format: (value: number) => string;
  /** The target for resizes in place with the default limits, by number of pipes. */
  readonly target?: Readonly<Record<number, string>>;
}

const seconds = (value: number) => `${value.toFixed(2)} s`;
const fixed = (value: number) => value.toFixed(1);
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
const percent = (share: number) => `${(share * 100).toFixed(2)} %`;

const ROWS: readonly Row[] = [
  {
    what: "all pods of the median service run the size",
    value: ({ podsMedian }) => podsMedian,
    format: seconds,
    target: { 300: "≤ 2 s" },
  },
  {
    what: "all pods of the last service run the size",
    value: ({ podsLast }) => podsLast,
    format: seconds,
    target: { 300: "≤ 6 s", 3000: "≤ 30 s" },
  },
  {
    what: "all templates have it",
    value: ({ templates }) => templates,
    format: seconds,
    target: { 3000: "≤ 720 s" },
  },
  { what: "every service is Ready", value: ({ ready }) => ready, format: seconds },
  { what: "pods replaced", value: ({ replaced }) => replaced, format: (value) => value.toLocaleString("en") },
  {
    what: "CPU time of the controller",
    value: ({ cpuSeconds }) => cpuSeconds,
    format: seconds,
    target: { 3000: "≤ 20 s" },
  },
  {
    what: "its writes per pipe, without Events",
    value: ({ counts }, pipes) => sumOf(ownWrites(counts)) / pipes,
    format: fixed,
  },
  {
    what: "writes per pipe of the whole cluster",
    value: ({ counts }, pipes) => sumOf(writesOf(counts)) / pipes,
    format: fixed,
  },
  { what: "its RSS afterward", value: ({ rssBytes }) => rssBytes, format: megabytes },
];

/** A table with a column for each way to resize the same pipes, and the medians of the rounds. */
export function resizesTable({ pipes, ways }: Resizes): string {
  const rounds = ways[0]?.rounds.length ?? 0;
  const header = [
    `${pipes.toLocaleString("en")} pipes of one pod, rounds: ${rounds}`,
    ...ways.map(titleOf),
    "target in place, default limits",
  ];
  const cells = ({ what, value, format, target }: Row) => [
    what,
    ...ways.map((way) => format(median(way.rounds.map((resized) => value(resized, pipes))))),
    target?.[pipes] ?? "",
  ];
  return table(header, ROWS.map(cells));
}

function titleOf({ strategy, limits }: Way): string {
  return `${strategy === "Rollout" ? "by rollouts" : "in place"}, ${limits} limits`;
}

function ownWrites(counts: RequestCounts): RequestCounts {
  return new Map([...counts].filter(([request]) => OWN_WRITES.includes(request)));
}

export function startsTable(starts: StartsWithPods): string {
  const { deployments, firstWriteMs, ledMs, rssBytes, cpuSeconds, idle, idleRssBytes } = starts;
  const row = (
    what: string,
    values: readonly number[],
    format: (value: number) => string,
    target: string,
  ) => [
    what,
    format(median(values)),
    `${format(Math.min(...values))} to ${format(Math.max(...values))}`,
    target,
  ];
  const ms = (value: number) => `${value.toFixed(0)} ms`;
  return table(
    [`start with ${deployments.toLocaleString("en")} Deployments and pods`, "median", "rounds", "target"],
    [
      row("from spawn to the first write", firstWriteMs, ms, "≤ 900 ms"),
      row("from spawn until the caches are filled and it leads", ledMs, ms, ""),
      row("RSS", rssBytes, megabytes, "≤ 120 MB"),
      row("CPU time until it is idle", cpuSeconds, seconds, ""),
      row(`CPU in ${idle.minutes} idle minutes, of a core`, [idle.cpuShare], percent, "≤ 0.30 %"),
      row("writes in them", [sumOf(ownWrites(idle.counts))], (value) => value.toFixed(0), "0"),
      row("RSS after them", [idleRssBytes], megabytes, ""),
    ],
  );
}
