import type { Node } from "../../src/kube/objects.ts";

/** A node that is ready and empty; `changes` makes it another. */
export function aNode(
  name: string,
  allocatable: Readonly<Record<string, string>>,
  { labels = {}, ...spec }: Node["spec"] & { readonly labels?: Readonly<Record<string, string>> } = {},
): Node {
  return {
    metadata: { name, labels, uid: `uid-${name}`, resourceVersion: "1" },
    spec,
    status: { allocatable },
  };
}
