import { hash } from "node:crypto";
import type { PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { parseTime } from "../../kube/time.ts";

/** The conditions that the controller writes. The others belong to other tools. */
export const OWN_CONDITIONS = ["Ready", "Reconciling", "Stalled"];

/** Times of a status that depend on the time of its first write. */
const TIMES = ["lastTransitionTime", "startedAt", "completedAt", "at"];

/**
 * Numbers in the messages of Kubernetes, such as "used: 950", "used: requests.memory=12Gi" or "0/3 nodes", which may
 * change with every pod that comes or goes. Those in names and times do not count.
 */
const NUMBERS = /(?<![^ (/])\d[\d.]*(?![\w:-])|(?<==)\d[\d.]*[A-Za-z]*(?![\w:-])/g;

/**
 * Identifies what the controller says in a status. It ignores times, so it is the same after another writer removed the
 * status, and numbers in messages, with the order of clauses that begin with one. It also ignores the conditions of
 * other tools and the older history, which another writer can set.
 */
export function contentOf({ conditions = [], history = [], ...status }: PipeScalingStatus): string {
  const own = conditions.filter(({ type }) => OWN_CONDITIONS.includes(type));
  const content = { ...status, conditions: own, history: history.slice(0, 1) };
  return hash("sha256", JSON.stringify(content, comparable));
}

/**
 * When the desired size began to be desired, in milliseconds since 1970; 0 if the status does not show it. A request
 * that repeats the size begins a new propagation, and does not end the time for which its pipes have waited for it.
 */
export function desiredSinceMs({ desired, history, propagation }: PipeScalingStatus): number {
  const newest = history?.[0];
  const isOfSize = newest !== undefined && newest.summary === desired?.summary;
  return parseTime((isOfSize ? newest : propagation)?.startedAt);
}

/** The order of keys depends on whether the API server returned an object or the controller made it. */
function comparable(key: string, value: unknown): unknown {
  if (TIMES.includes(key) && typeof value === "string") return "";
  if (key === "message" && typeof value === "string") return comparableMessage(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Equal for messages that differ only in numbers, and in the order of clauses that begin with one. */
export function comparableMessage(message: string): string {
  return message.split(SENTENCE_ENDS).map(comparableSentence).join(". ");
}

const SENTENCE_ENDS = /[.;](?: |$)/;

/**
 * The scheduler counts nodes for each reason, and sorts these clauses by their text, which begins with the number. So
 * another number can change their order.
 */
function comparableSentence(sentence: string): string {
  return sentence
    .split(/[,:] (?=\d)/)
    .map((clause) => clause.replaceAll(NUMBERS, ""))
    .sort()
    .join(", ");
}
