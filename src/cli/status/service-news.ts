import { type PipeScalingView, toPipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import type { EndedCall, KubeClient } from "../../kube/client.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Service } from "../../records/service.ts";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import type { Informer } from "../../runtime/informer.ts";
import { Reflector } from "../../runtime/reflector.ts";
import { Store } from "../../runtime/store.ts";
import { sentenceFor } from "../failure.ts";
import type { News } from "../view/follow.ts";
import type { Selection } from "./list.ts";
import type { Look } from "./look.ts";
import type { WatchedPipe } from "./pipe-lines.ts";
import { viewOf } from "./scaling-view.ts";
import { pipesOf, scalingsOf, watchedPipeOf } from "./service-kinds.ts";
import type { ServiceStanding } from "./services.ts";

/**
 * How a service's rescale goes on, by watches of its namespace. A watch that is lost is told as trouble, and
 * begun again until the signal is aborted.
 */
export class ServiceNews {
  readonly #service: Service;
  readonly #clock: Clock;
  readonly #scalings = new Store<PipeScalingView>();
  readonly #pipes = new Store<WatchedPipe>();
  /** By the plural of the kind. */
  readonly #troubles = new Map<string, string>();
  readonly #readable: Look;
  readonly #oldTier: string | undefined;
  #changed = Promise.withResolvers<void>();
  #latest: ServiceStanding | undefined;

  /**
   * @param readable what may be read at all: the rest is not watched
   * @param oldTier see viewOf()
   */
  constructor(service: Service, readable: Look, oldTier: string | undefined, clock: Clock = systemClock) {
    this.#service = service;
    this.#readable = readable;
    this.#oldTier = oldTier;
    this.#clock = clock;
  }

  /** What was told last. */
  get latest(): ServiceStanding | undefined {
    return this.#latest;
  }

  /** To be told of each call of the client: that a watch is answered is the end of its trouble. */
  onCall({ verb, resource, code }: EndedCall): void {
    if (verb === "watch" && code === 200 && this.#troubles.delete(resource)) this.#change();
  }

  /**
   * News for follow(), the first once everything is known that can be.
   *
   * @param signal ends it
   */
  async *since(client: KubeClient, signal: AbortSignal): AsyncGenerator<News> {
    const ending = new AbortController();
    const running = AbortSignal.any([signal, ending.signal]);
    running.addEventListener("abort", () => this.#change());
    const informers = this.#informers(client);
    const watching = informers.map((each) => each.run(running));
    for (const each of informers) void each.synced.then(() => this.#change());
    try {
      for (;;) {
        await this.#changed.promise;
        this.#changed = Promise.withResolvers();
        if (running.aborted) return;
        const [trouble] = this.#troubles.values();
        if (trouble !== undefined) yield { trouble };
        else if (informers.every(({ isSynced }) => isSynced)) {
          this.#latest = this.#standing();
          yield { view: this.#latest.view };
        }
      }
    } finally {
      ending.abort();
      await Promise.all(watching);
    }
  }

  #change(): void {
    this.#changed.resolve();
  }

  #informers(client: KubeClient): Informer[] {
    const service = this.#service;
    const { pipes } = this.#readable;
    return [
      this.#reflector(client, scalingsOf(service), this.#scalings, toPipeScalingView),
      ...(pipes ? [this.#reflector(client, pipesOf(service), this.#pipes, watchedPipeOf)] : []),
    ];
  }

  #reflector<T extends KubeObject, Raw extends KubeObject>(
    client: KubeClient,
    selection: Selection,
    store: Store<T>,
    project: (raw: Raw) => T,
  ): Informer {
    store.onChange(() => this.#change());
    const onProblem = (problem: unknown) => {
      this.#troubles.set(selection.resource.plural, troubleOf(problem));
      this.#change();
    };
    // As JSON, of which more fields are shown.
    const { apiVersion, plural } = selection.resource;
    const resource = { apiVersion, plural };
    return new Reflector<T, Raw>({
      ...selection,
      resource,
      client,
      clock: this.#clock,
      store,
      project,
      onProblem,
    });
  }

  #standing(): ServiceStanding {
    const [scaling] = this.#scalings.values();
    const pipes = [...this.#pipes.values()].filter(({ isBeingDeleted }) => !isBeingDeleted);
    const service = this.#service;
    const view = viewOf(service.name, scaling, this.#readable.pipes && pipes, this.#oldTier);
    return { service, scaling, view };
  }
}

function troubleOf(problem: unknown): string {
  const why = problem instanceof Error ? problem.message : String(problem);
  return `${sentenceFor(problem) ?? `The connection to the cluster was lost (${why}).`} Trying again.`;
}
