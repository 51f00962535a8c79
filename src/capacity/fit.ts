import type { PodSpec } from "../kube/pods.ts";
import { matchesNode } from "./node-match.ts";
import type { NodeView } from "./node-view.ts";
import { type Amounts, podRequests } from "./pod-requests.ts";

/**
 * Returns the reason why no node is large enough for the pod, even without other pods; `undefined` if one is. It
 * ignores the requests of other pods, because they can end or be preempted (docs/adr/0027).
 */
export function lackOfCapacity(spec: PodSpec, nodes: readonly NodeView[]): string | undefined {
  const requests = podRequests(spec);
  const matching = nodes.filter((node) => matchesNode(spec, node)).map(({ allocatable }) => allocatable);
  if (matching.some((allocatable) => isEnough(allocatable, requests))) return undefined;
  const pod = wouldRequest(requests);
  const [first, ...others] = matching;
  if (!first) {
    const all = `${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}`;
    return `${pod}, and it may run on none of the ${all} of the cluster (node selector, node affinity, taints): add a node for it, or change these rules`;
  }
  const largest = others.reduce((a, b) => (isLarger(b, a) ? b : a), first);
  const has = `${describe(largest, roundDown)} allocatable`;
  const which =
    others.length === 0
      ? `the one node that it may run on has ${has}`
      : `the largest of the ${matching.length} nodes that it may run on has ${has}`;
  return `${pod}, and ${which}: request a smaller size, or add a larger node`;
}

/** The nodes that the pod may run on and that are large enough for it. */
export function nodesFor(spec: PodSpec, nodes: readonly NodeView[]): readonly NodeView[] {
  const requests = podRequests(spec);
  return nodes.filter((node) => matchesNode(spec, node) && isEnough(node.allocatable, requests));
}

function isEnough(amounts: Amounts, { cpu, memory }: Amounts): boolean {
  return amounts.cpu >= cpu && amounts.memory >= memory;
}

/** The beginning of a sentence for people. */
export function wouldRequest(requests: Amounts): string {
  return `its pod would request ${describe(requests, roundUp)}`;
}

function isLarger(a: Amounts, b: Amounts): boolean {
  return a.cpu === b.cpu ? a.memory > b.memory : a.cpu > b.cpu;
}

const GIB = 2n ** 30n;
const BILLION = 1_000_000_000n;

type Round = (amount: bigint, unit: bigint) => bigint;

const roundDown: Round = (amount, unit) => amount / unit;
const roundUp: Round = (amount, unit) => (amount + unit - 1n) / unit;

/** Shows thousandths of cores and hundredths of GiB. Rounding never makes a request appear to fit that does not. */
function describe({ cpu, memory }: Amounts, round: Round): string {
  const cores = Number(round(cpu, BILLION / 1000n)) / 1000;
  const gib = Number(round(memory * 100n, BILLION * GIB)) / 100;
  return `${cores} cpu / ${gib} Gi`;
}
