import { START_AFTER_ANNOTATION, STOP_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { it } from "./fixtures.ts";

/** At an earlier size, it already has a ReplicaSet, and its Deployment has the conditions of that rollout. */
it("a Recreate pipe is ready only when its new pod is, in every rescale", async ({
  invariants,
  startPipes,
  requestSize,
}) => {
  const podAnnotations = { [START_AFTER_ANNOTATION]: "800ms", [STOP_AFTER_ANNOTATION]: "300ms" };
  await startPipes(["pipe-a", "pipe-b"].map((name) => ({ name, strategy: "Recreate", podAnnotations })));
  await invariants.settled(1, { quietMs: 0 });
  for (const cores of [4, 1, 4, 2, 1]) {
    await requestSize(cores);
    await invariants.settled(cores, { quietMs: 0 });
  }
  await invariants.end();
});
