import type { KubeClient } from "../kube/client.ts";
import { isForbiddenByRbac, isWithoutRoles } from "../kube/errors.ts";
import type { Node } from "../kube/objects.ts";
import { collectionPath, NODES } from "../kube/paths.ts";
import { listOf } from "../kube/protobuf/envelope.ts";
import { node } from "../kube/protobuf/messages.ts";
import type { Clock } from "../runtime/clock.ts";
import { listPages } from "../runtime/list-pages.ts";
import type { Logger } from "../telemetry/log.ts";
import { type NodeView, toNodeView } from "./node-view.ts";

interface NodesOptions {
  readonly client: Pick<KubeClient, "json">;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Logger, "warn">;
  /** All services share one list of nodes for this long. */
  readonly maxAgeMs: number;
}

const NODE_LIST = listOf(node);

/** Lists nodes on demand. A watch would produce an event for every status update of every kubelet. */
export class Nodes {
  readonly #options: NodesOptions;
  #recent: Promise<readonly NodeView[] | undefined> | undefined;
  #isRefusalLogged = false;

  constructor(options: NodesOptions) {
    this.#options = options;
  }

  /**
   * @returns `undefined` if the controller has no permission to list nodes
   * @throws KubeApiError or KubeUnreachableError for any other error; then the next call lists again
   */
  list(): Promise<readonly NodeView[] | undefined> {
    if (this.#recent !== undefined) return this.#recent;
    const listed = this.#read();
    const forget = () => {
      if (this.#recent === listed) this.#recent = undefined;
    };
    const { clock, maxAgeMs } = this.#options;
    listed.then(() => clock.after(maxAgeMs, forget), forget);
    this.#recent = listed;
    return listed;
  }

  async #read(): Promise<readonly NodeView[] | undefined> {
    const { client, log } = this.#options;
    const request = { path: collectionPath(NODES, undefined), message: NODE_LIST };
    try {
      const { objects } = await listPages<Node, NodeView>(client, request, (each) => [toNodeView(each)]);
      return objects;
    } catch (err) {
      if (!isForbiddenByRbac(err) || isWithoutRoles(err)) throw err;
      const text = "no permission to list nodes: rollouts start without a check of node capacity";
      if (!this.#isRefusalLogged) log.warn({ err }, text);
      this.#isRefusalLogged = true;
      return undefined;
    }
  }
}
