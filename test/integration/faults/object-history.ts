import type { Entry, Kind, Kinds, Sighting } from "./history.ts";
import { NAMESPACE, SERVICE } from "./history-objects.ts";
import { sizeOfCores } from "./pipe-view.ts";

/** The events of a history, with increasing resource versions. */
export class ObjectHistory {
  readonly entries: Entry[] = [];
  #version = 100;
  #atMs = 0;

  accept(cores: number): this {
    this.entries.push({
      type: "accepted",
      serviceId: SERVICE,
      size: sizeOfCores(cores),
      after: BigInt(this.#version),
    });
    return this;
  }

  /** The API server refuses larger sizes from now on, or none any more. */
  limit(mostCores: number | undefined): this {
    const after = BigInt(this.#version);
    this.entries.push({ type: "limited", serviceId: SERVICE, mostCores, after });
    return this;
  }

  /** Advances the time. */
  after(ms: number): this {
    this.#atMs += ms;
    return this;
  }

  leader(holderIdentity: string): this {
    return this.add("seen", "Lease", { metadata: this.meta("lease"), spec: { holderIdentity } });
  }

  gap(kind: keyof Kinds, happened: (history: this) => void): this {
    const after = BigInt(this.#version);
    happened(this);
    this.entries.push({ type: "gap", kind, after, until: BigInt(this.#version) });
    return this;
  }

  protected get version(): number {
    return this.#version;
  }

  protected add<K extends Kind>(type: "seen" | "gone", kind: K, object: Kinds[K]): this {
    const sighting = { type, kind, isInitial: false, atMs: this.#atMs, object };
    this.entries.push(sighting as Sighting);
    return this;
  }

  protected meta(name: string) {
    return { name, namespace: NAMESPACE, uid: `uid of ${name}`, ...this.next() };
  }

  protected next() {
    this.#version += 1;
    return { resourceVersion: `${this.#version}` };
  }
}
