import { isForbiddenByRbac, isWithoutRoles, serverMessage } from "../kube/errors.ts";
import type { Clock } from "./clock.ts";
import type { Informer } from "./informer.ts";

interface Options {
  readonly clock: Pick<Clock, "monotonic" | "after">;
  readonly onProblem: (problem: unknown) => void;
  /** Called when the permission is found missing, and soon after it was granted. */
  readonly onPermissionChange: () => void;
}

/** While the permission is missing, the state of the informer is looked at in this interval. */
const LOOK_MS = 10_000;

/** An authorizer can add any text to a message, so the number of messages has a bound. */
const MAX_REPORTED = 1000;

/**
 * An informer of a kind that a process can do without, in one namespace or in all. If the account may not list and watch
 * the kind there, the informer counts as synced, and tries again with the backoff of its reflector. Repeated refusals
 * are reported only once.
 */
export class OptionalInformer implements Informer {
  readonly synced: Promise<void>;
  readonly #inner: Informer;
  readonly #options: Options;
  readonly #refused = Promise.withResolvers<void>();
  /** Messages of refusals; each verb has its own. */
  readonly #reported = new Set<string>();
  #problem: { readonly message: string; readonly atMs: number } | undefined;
  #cancelLook: (() => void) | undefined;

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
    return this.#isGranted ? undefined : this.#problem?.message;
  }

  /** Call it when the store changes, which can show that the permission is granted. */
  granted(): void {
    if (this.#problem === undefined) return;
    // The informer changes the store before its own state. The responses to our calls change the store, too.
    queueMicrotask(() => this.#look());
  }

  #look(): void {
    if (!this.#isGranted) return;
    this.#problem = undefined;
    this.#reported.clear();
    this.#options.onPermissionChange();
  }

  /** A watch that continues shows the permission by a bookmark, and if no object changes, the store never does. */
  #lookLater(): void {
    this.#cancelLook ??= this.#options.clock.after(LOOK_MS, () => {
      this.#cancelLook = undefined;
      this.#look();
      if (this.#problem !== undefined) this.#lookLater();
    });
  }

  /** The informer has been in contact since the last refusal. */
  get #isGranted(): boolean {
    const { isSynced, lastContact } = this.#inner;
    return this.#problem !== undefined && isSynced && lastContact > this.#problem.atMs;
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#inner.run(signal);
    this.#cancelLook?.();
  }

  #onProblem(problem: unknown): void {
    if (isForbiddenByRbac(problem) && !isWithoutRoles(problem)) {
      const message = serverMessage(problem);
      const isNew = this.problem === undefined;
      this.#problem = { message, atMs: this.#options.clock.monotonic() };
      this.#refused.resolve();
      this.#lookLater();
      if (isNew) this.#options.onPermissionChange();
      if (this.#reported.has(message)) return;
      if (this.#reported.size === MAX_REPORTED) this.#reported.clear();
      this.#reported.add(message);
    }
    this.#options.onProblem(problem);
  }
}
