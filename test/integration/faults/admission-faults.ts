import { setTimeout as delay } from "node:timers/promises";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  type AdmissionWebhook,
  allow,
  deny,
  removeAnnotation,
} from "../../support/servers/admission-webhook.ts";
import type { OtherWriters } from "./operations.ts";
import type { Operation, ServiceUnderTest } from "./service-under-test.ts";

/** Maximum duration of a fault, and of a slow response. */
const FAULT_MS = 5000;
const SLOW_MS = 2000;

type Respond = (request: AdmissionRequest) => AdmissionResponse | Promise<AdmissionResponse>;

/** A webhook that rejects, changes or delays the controller's writes for a while. */
export class AdmissionFaults implements OtherWriters {
  readonly operations: readonly Operation[] = [this.#deny, this.#strip, this.#slow].map((operation) =>
    operation.bind(this),
  );
  readonly #service: ServiceUnderTest;
  readonly #webhook: AdmissionWebhook;

  constructor(service: ServiceUnderTest, webhook: AdmissionWebhook) {
    this.#service = service;
    this.#webhook = webhook;
  }

  end(): Promise<void> {
    this.#webhook.respond = allow;
    return Promise.resolve();
  }

  #deny(): Promise<void> {
    return this.#forAWhile(deny(this.#service.pick([400, 403, 409, 422, 429, 500, 503]), "not now"));
  }

  #strip(): Promise<void> {
    return this.#forAWhile(removeAnnotation);
  }

  #slow(): Promise<void> {
    const ms = this.#service.random() * SLOW_MS;
    return this.#forAWhile(() => delay(ms, allow()));
  }

  #forAWhile(respond: Respond): Promise<void> {
    const until = performance.now() + this.#service.random() * FAULT_MS;
    this.#webhook.respond = (request) => (performance.now() < until ? respond(request) : allow());
    return Promise.resolve();
  }
}
