import { KubectlError } from "@pipe-scaling/local-cluster/kubectl";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";

/**
 * An operation on the cluster. It rejects if the API server is down or rejects it. It returns false if there was nothing
 * that it could apply to, or else anything; text is details.
 */
export type Operation = () => Promise<unknown>;

/** Other programs that act on a service. */
export interface OtherWriters {
  readonly operations: readonly Operation[];
  /** Resolves when they have stopped. */
  end(): Promise<void>;
  /** Sentences about forbidden acts of the controller towards them. */
  readonly violations?: readonly string[];
}

/** The result of an operation that the API server could not or would not execute. */
export const REFUSED = Symbol("refused");

export async function ifPossible(operation: Operation): Promise<unknown> {
  try {
    return await operation();
  } catch (error) {
    const isRefused = [KubeApiError, KubeUnreachableError, KubectlError].some(
      (each) => error instanceof each,
    );
    if (!isRefused) throw error;
    return REFUSED;
  }
}

/** After this number of attempts, an operation must have had an effect at least once. */
const MOST_VAIN = 12;

interface Count {
  tried: number;
  applied: number;
}

/** The operations and faults of a random test, and how often each had an effect. */
export class OperationLog {
  readonly #lines: string[] = [];
  readonly #counts = new Map<string, Count>();

  /**
   * Executes an operation or a fault, and notes its name and its details.
   * @param attempt for operations that may be refused
   */
  async run(where: string, operation: Operation, attempt = (each: Operation) => each()): Promise<void> {
    const at = new Date().toISOString();
    const name = nameOf(operation);
    const count = this.#counts.get(name) ?? { tried: 0, applied: 0 };
    this.#counts.set(name, count);
    count.tried += 1;
    const result = await attempt(operation);
    const isApplied = result !== false && result !== REFUSED;
    if (isApplied) count.applied += 1;
    this.#lines.push(`${at} ${where} ${name}${endOf(result)}`);
  }

  /** @throws Error if an operation was tried often and never had an effect: it tests nothing */
  mustHaveHappened(): void {
    const vain = [...this.#counts].filter(([, { tried, applied }]) => tried >= MOST_VAIN && applied === 0);
    if (vain.length === 0) return;
    const names = vain.map(([name, { tried }]) => `${name} (${tried} attempts)`);
    throw new Error(`These operations never had an effect: ${names.join(", ")}.`);
  }

  get text(): string {
    const counts = [...this.#counts]
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([name, { tried, applied }]) => `${name}: ${applied} of ${tried}`);
    return [...this.#lines, "", "With an effect:", ...counts].join("\n");
  }
}

function endOf(result: unknown): string {
  if (result === REFUSED) return " (refused)";
  if (result === false) return " (nothing to do)";
  return typeof result === "string" ? ` ${result}` : "";
}

/** The name of a bound method. */
export function nameOf(operation: Operation): string {
  return operation.name.replace(/^bound #|^#/, "");
}
