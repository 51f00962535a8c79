import { setTimeout as delay } from "node:timers/promises";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  type AdmissionWebhook,
  allow,
  deny,
  type Reviewed,
  removeAnnotation,
  reviewedKind,
} from "../../support/servers/admission-webhook.ts";
import { DeniedWrites } from "./denied-writes.ts";
import type { Operation, OtherWriters } from "./operation.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

/** Maximum duration of a fault, of an outage, and of a slow response. */
const FAULT_MS = 5000;
const OUTAGE_MS = 20_000;
const SLOW_MS = 2000;

type Respond = (request: AdmissionRequest) => AdmissionResponse | Promise<AdmissionResponse>;

interface Fault {
  readonly untilMs: number;
  readonly writes: DeniedWrites;
  readonly respond: Respond;
  readonly isOfDryRuns: boolean;
}

/** Webhooks that reject, change or delay the controller's writes to one kind for a while, or are down. */
export class AdmissionFaults implements OtherWriters {
  readonly operations: readonly Operation[];
  readonly #service: ServiceUnderTest;
  readonly #faults = new Map<Reviewed, Fault>();
  readonly #violations = new Set<string>();

  constructor(service: ServiceUnderTest, webhook: AdmissionWebhook) {
    this.#service = service;
    service.onCalm(() => this.end());
    webhook.respond = (request) => this.#respond(request, false);
    webhook.respondToDryRun = (request) => this.#respond(request, true);
    this.operations = [
      this.#denyDeployments,
      this.#stripDeployments,
      this.#slowDeployments,
      this.#outageOfDeployments,
      this.#denyReplicaSets,
      this.#outageOfReplicaSets,
      this.#denyResizes,
      this.#slowResizes,
      this.#outageOfResizes,
      this.#denyStatus,
      this.#outageOfStatus,
    ].map((operation) => operation.bind(this));
  }

  end(): Promise<void> {
    this.#faults.clear();
    return Promise.resolve();
  }

  get violations(): readonly string[] {
    return [...this.#violations].map((each) => `the controller repeated denied writes too often: ${each}`);
  }

  #respond(request: AdmissionRequest, isDryRun: boolean): AdmissionResponse | Promise<AdmissionResponse> {
    const fault = this.#faults.get(reviewedKind(request));
    if (!fault || performance.now() >= fault.untilMs || (isDryRun && !fault.isOfDryRuns)) return allow();
    const object = `${reviewedKind(request)} ${request.name}`;
    if (!fault.writes.add(object, performance.now())) this.#violations.add(object);
    return fault.respond(request);
  }

  #denyDeployments(): Promise<unknown> {
    return this.#deny("deployments");
  }

  #stripDeployments(): Promise<unknown> {
    return this.#forAWhile("deployments", removeAnnotation, FAULT_MS);
  }

  #slowDeployments(): Promise<unknown> {
    return this.#slow("deployments");
  }

  #outageOfDeployments(): Promise<unknown> {
    return this.#goDown("deployments", OUTAGE_MS);
  }

  #denyReplicaSets(): Promise<unknown> {
    return this.#deny("replicasets");
  }

  #outageOfReplicaSets(): Promise<unknown> {
    return this.#goDown("replicasets", OUTAGE_MS);
  }

  #denyResizes(): Promise<unknown> {
    return this.#deny("pods/resize");
  }

  #slowResizes(): Promise<unknown> {
    return this.#slow("pods/resize");
  }

  #outageOfResizes(): Promise<unknown> {
    return this.#goDown("pods/resize", OUTAGE_MS);
  }

  #denyStatus(): Promise<unknown> {
    return this.#deny("pipescalings/status");
  }

  /** Shorter, because meanwhile the status says what was so before. */
  #outageOfStatus(): Promise<unknown> {
    return this.#goDown("pipescalings/status", FAULT_MS);
  }

  #deny(kind: Reviewed): Promise<unknown> {
    const code = this.#service.pick([400, 403, 409, 422, 429, 500, 503]);
    return this.#forAWhile(kind, deny(code, "not now"), FAULT_MS);
  }

  #slow(kind: Reviewed): Promise<unknown> {
    const ms = this.#service.random() * SLOW_MS;
    return this.#forAWhile(kind, () => delay(ms, allow()), FAULT_MS);
  }

  /** The API server answers 500 if it cannot call a webhook, also to dry runs. */
  #goDown(kind: Reviewed, mostMs: number): Promise<unknown> {
    const down = deny(500, "failed calling webhook: connection refused");
    return this.#forAWhile(kind, down, mostMs, true);
  }

  #forAWhile(kind: Reviewed, respond: Respond, mostMs: number, isOfDryRuns = false): Promise<unknown> {
    const ms = this.#service.random() * mostMs;
    const now = performance.now();
    this.#faults.set(kind, { untilMs: now + ms, writes: new DeniedWrites(now), respond, isOfDryRuns });
    return Promise.resolve(`for ${Math.round(ms)} ms`);
  }
}
