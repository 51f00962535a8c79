import { isForbiddenByRbac, isWithoutRoles, serverMessage } from "../kube/errors.ts";
import type { Clock } from "./clock.ts";
import type { Informer } from "./informer.ts";

interface Options {
  readonly clock: Pick<Clock, "monotonic">;
  readonly onProblem: (problem: unknown) => void;
  /** Called when the store changes for the first time after the permission was missing. */
  readonly onGranted: () => void;
}

/**
 * An informer of a kind that a process can do without. If the account may not list and watch the kind, the informer
 * counts as synced, and tries again with the backoff of its reflector. Repeated refusals are reported only once.
 */
export class OptionalInformer implements Informer {
  readonly synced: Promise<void>;
  readonly #inner: Informer;
  readonly #options: Options;
  readonly #refused = Promise.withResolvers<void>();
  #problem: { readonly message: string; readonly atMs: number } | undefined;

  /** @param create creates the informer, which must report its problems to the given function */
  constructor(create: (onProblem: (problem: unknown) => void) => Informer, options: Options) {
    this.#options = options;
    this.#inner = create((problem) => this.#onProblem(problem));
    this.synced = Promise.race([this.#inner.synced, this.#refused.promise]);
  }

  get resource(): string {
    return this.#inner.resource;
  }

  get isSynced(): boolean {
    return this.problem !== undefined || this.#inner.isSynced;
  }

  get lastContact(): number {
    return this.problem === undefined ? this.#inner.lastContact : this.#options.clock.monotonic();
  }

  /** The message of the API server while the permission is missing, otherwise `undefined`. */
  get problem(): string | undefined {
    const isOver = this.#problem && this.#inner.isSynced && this.#inner.lastContact > this.#problem.atMs;
    return isOver ? undefined : this.#problem?.message;
  }

  /** Call it when the store changes, which shows that the permission is granted. */
  granted(): void {
    if (this.#problem === undefined) return;
    this.#problem = undefined;
    this.#options.onGranted();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#inner.run(signal);
  }

  #onProblem(problem: unknown): void {
    if (isForbiddenByRbac(problem) && !isWithoutRoles(problem)) {
      const message = serverMessage(problem);
      const isKnown = this.#problem?.message === message;
      this.#problem = { message, atMs: this.#options.clock.monotonic() };
      this.#refused.resolve();
      if (isKnown) return;
    }
    this.#options.onProblem(problem);
  }
}
