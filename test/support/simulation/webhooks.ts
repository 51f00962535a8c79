import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { targetOf } from "./selectors.ts";

/** The kinds of objects whose writes a webhook can check. */
export type WebhookKind = "deployments" | "replicasets" | "pods/resize" | "pipescalings/status";

interface Outage {
  readonly kind: WebhookKind;
  readonly untilMs: number;
  readonly delayMs: number;
}

/** The time that the API server waits for a webhook. */
const WEBHOOK_TIMEOUT_MS = 10_000;

/** Webhooks that check writes, and sometimes do not respond. */
export class SimulatedWebhooks {
  /** Number of writes that failed, by kind. */
  readonly failed = new Map<WebhookKind, number>();
  readonly #clock: FakeClock;
  #outages: Outage[] = [];

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  /**
   * The webhook for this kind is down for a while.
   *
   * @param isSilent it does not respond, so that each write fails only after 10 s; otherwise each fails at once
   */
  down(kind: WebhookKind, durationMs: number, { isSilent = false } = {}): void {
    const untilMs = this.#clock.monotonic() + durationMs;
    this.#outages.push({ kind, untilMs, delayMs: isSilent ? WEBHOOK_TIMEOUT_MS : 0 });
  }

  up(): void {
    this.#outages = [];
  }

  /** Resolves if no webhook prevents the write. Dry runs call webhooks, too. */
  async check(request: KubeRequest): Promise<void> {
    const { resource } = targetOf(request);
    const nowMs = this.#clock.monotonic();
    const outage = this.#outages.find(({ kind, untilMs }) => kind === resource && untilMs > nowMs);
    if (!outage || (request.method ?? "GET") === "GET") return;
    const { kind, delayMs } = outage;
    if (delayMs > 0) await new Promise<void>((resolve) => this.#clock.after(delayMs, resolve));
    this.failed.set(kind, (this.failed.get(kind) ?? 0) + 1);
    const cause = delayMs > 0 ? "context deadline exceeded" : "connect: connection refused";
    const message = `Internal error occurred: failed calling webhook "policy.example": failed to call webhook: Post "https://policy.example": ${cause}`;
    throw new KubeApiError("PATCH", 500, JSON.stringify({ message, reason: "InternalError" }));
  }
}
