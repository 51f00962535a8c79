import { expect, it } from "vitest";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { pause } from "../../../src/runtime/clock.ts";
import { MultiNamespaceInformer } from "../../../src/runtime/multi-namespace-informer.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { Store } from "../../../src/runtime/store.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";
import { refusal } from "../../support/fakes/fake-cluster.ts";

const MINUTE_MS = 60_000;

it("the last contact of an informer with one watch per namespace is that of the oldest one", async () => {
  const [clock, abort] = [new FakeClock(), new AbortController()];
  const bookmark = (annotations: object) =>
    Buffer.from(
      `${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "1", annotations } } })}\n`,
    );
  /** The permission in the namespace b ends after the list. */
  async function* events({ path, signal }: KubeRequest & { readonly signal: AbortSignal }) {
    yield bookmark({ "k8s.io/initial-events-end": "true" });
    while (path.includes("/a/") && !signal.aborted) {
      await pause(clock, MINUTE_MS, signal);
      yield bookmark({});
    }
    throw refusal(403);
  }
  const informer = new MultiNamespaceInformer({
    client: {
      json: () => Promise.reject(refusal(403)),
      stream: async (request) => {
        if (!request.path.includes("/namespaces/")) throw refusal(403);
        return events(request);
      },
    },
    resource: { apiVersion: "v1", plural: "things" },
    namespaces: ["a", "b"],
    create: (options) => new Reflector(options),
    store: new Store(),
    project: (raw) => raw,
    clock,
    onProblem: () => undefined,
  });
  const running = informer.run(abort.signal);
  await clock.advance(10 * MINUTE_MS);
  expect([informer.isSynced, informer.lastContact]).toEqual([true, 0]);
  abort.abort();
  await clock.advance(0);
  await running;
});
