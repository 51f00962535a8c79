import { REVISION_HASH_LABEL } from "../../../src/controller/names.ts";
import { collectionPath, PODS, STATEFUL_SETS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { StatefulSet } from "../../../src/kube/workloads.ts";
import type { TestEnvironment } from "../../support/test-environment.ts";
import { isHeld } from "../stateful-commit.ts";
import { WatchedKind } from "./watched-kind.ts";

/** 15 s until another leader can take over, and 30 s for it to end the commit. */
const MOST_HELD_MS = 45_000;
/** The creation time has whole seconds. */
const NEW_MS = 2000;
/** Kubernetes replaces pods within this time after an owner took a hold away. */
const OWNER_MS = 10_000;

/** Checks each version of one StatefulSet and its pods: no pod is replaced without a reason of the owner, and holds end. */
export class StatefulJudge {
  readonly violations = new Set<string>();
  readonly #abort = new AbortController();
  readonly #runs: Promise<void>[] = [];
  readonly #ending = new Set<string>();
  /** Names of pods that somebody deletes, and until when the owner may have caused a replacement. */
  readonly #deleted = new Set<string>();
  #excusedUntilMs = 0;
  #heldSinceMs: number | undefined;
  readonly #sets: StatefulSet[] = [];
  /** Pods that ended. The StatefulSet before that may arrive later, because it has another watch. */
  readonly #unjudged: { readonly pod: Pod; readonly violation: string }[] = [];

  static async observe({ client, pipes }: TestEnvironment): Promise<StatefulJudge> {
    const judge = new StatefulJudge();
    const { signal } = judge.#abort;
    const onGap = () => judge.violations.add("the history has a gap");
    const sets = new WatchedKind<StatefulSet>({
      client,
      signal,
      onGap,
      path: collectionPath(STATEFUL_SETS, pipes),
      onObservation: ({ object }) => judge.#seen(object),
    });
    const pods = new WatchedKind<Pod>({
      client,
      signal,
      onGap,
      path: collectionPath(PODS, pipes),
      onObservation: ({ type, object }) => judge.#podSeen(object, type === "gone"),
    });
    await sets.begin();
    await pods.begin();
    judge.#runs.push(sets.run(), pods.run());
    return judge;
  }

  /** Somebody deletes this pod now. */
  deletes(uid: string): void {
    this.#deleted.add(uid);
  }

  /** The owner takes a hold away. */
  excuse(): void {
    this.#excusedUntilMs = performance.now() + OWNER_MS;
  }

  /** All pods have their size and their label. Judges the pods that have ended. */
  settled(): void {
    this.#excusedUntilMs = 0;
    for (const { pod, violation } of this.#unjudged.splice(0))
      if (!this.#isReplacedByOwner(pod)) this.violations.add(violation);
  }

  async end(): Promise<void> {
    this.#abort.abort();
    await Promise.all(this.#runs);
  }

  #seen(object: StatefulSet): void {
    const nowMs = performance.now();
    this.#sets.push(object);
    if (!isHeld(object)) this.#heldSinceMs = undefined;
    else this.#heldSinceMs ??= nowMs;
    const heldMs = this.#heldSinceMs === undefined ? 0 : nowMs - this.#heldSinceMs;
    if (heldMs > MOST_HELD_MS) this.violations.add(`the pods were held for ${Math.round(heldMs)} ms`);
  }

  #podSeen(pod: Pod, isGone: boolean): void {
    const { metadata } = pod;
    const { name, uid, ownerReferences = [] } = metadata;
    if (!ownerReferences.some(({ kind }) => kind === "StatefulSet")) return;
    if (!(isGone || metadata.deletionTimestamp !== undefined) || this.#ending.has(uid)) return;
    this.#ending.add(uid);
    if (this.#isExcused(pod)) return;
    const ageMs = Date.now() - Date.parse(metadata.creationTimestamp ?? "");
    // Kubernetes created it in the moment of the release, with the revision before. It has not run yet.
    if (ageMs < NEW_MS) return;
    const revision = metadata.labels?.[REVISION_HASH_LABEL];
    const violation = `${name} (${uid}) of ${revision} was replaced ${ageMs} ms after its creation without a reason, at ${new Date().toISOString()}`;
    this.#unjudged.push({ pod, violation });
  }

  #isExcused({ metadata: { uid } }: Pod): boolean {
    return this.#deleted.has(uid) || performance.now() < this.#excusedUntilMs;
  }

  /** True if the StatefulSet, as it was when the pod ended or one generation before, does not want this pod. */
  #isReplacedByOwner(pod: Pod): boolean {
    const { name, resourceVersion } = pod.metadata;
    const before = this.#sets.filter(
      ({ metadata }) => BigInt(metadata.resourceVersion) < BigInt(resourceVersion),
    );
    const newest = before.at(-1)?.metadata.generation ?? 0;
    const number = Number(name.slice(name.lastIndexOf("-") + 1));
    return before
      .filter(({ metadata: { generation = 0 } }) => generation >= newest - 1)
      .some((set) => number >= (set.spec.replicas ?? 1) || imageIn(pod) !== imageOf(set));
  }
}

function imageIn({ spec }: Pick<Pod, "spec">): string | undefined {
  return /"image":"([^"]*)"/.exec(JSON.stringify(spec))?.[1];
}

function imageOf(object: StatefulSet): string | undefined {
  return /"image":"([^"]*)"/.exec(JSON.stringify(object.spec.template))?.[1];
}
