import { collectionPath, PODS } from "../../src/kube/paths.ts";
import type { Pod } from "../../src/kube/pods.ts";
import type { TestEnvironment } from "../support/test-environment.ts";

/** All pods of the pipes of an environment, read live. */
export async function podsOf({ client, pipes }: TestEnvironment): Promise<readonly Pod[]> {
  const { items } = await client.json<{ readonly items: readonly Pod[] }>({
    path: collectionPath(PODS, pipes),
  });
  return items;
}

/** The sorted UIDs of these pods: the replacement of a pod changes them. */
export async function podUids(environment: TestEnvironment): Promise<readonly string[]> {
  return (await podsOf(environment)).map(({ metadata }) => metadata.uid).sort();
}
