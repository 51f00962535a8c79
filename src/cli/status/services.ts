import { type PipeScalingView, toPipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import type { KubeClient } from "../../kube/client.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Service } from "../../records/service.ts";
import type { RescaleView } from "../view/rescale-view.ts";
import { listAll } from "./list.ts";
import { unlessForbidden, withoutDefinition } from "./look.ts";
import type { Organizations } from "./rows.ts";
import { oldTierOf, viewOf } from "./scaling-view.ts";

/** A service and how its rescale stands. */
export interface ServiceStanding {
  readonly service: Service;
  readonly scaling: PipeScalingView | undefined;
  readonly view: RescaleView;
}

/** Each service by its PipeScaling: read at once where that is allowed, else namespace by namespace. */
export async function standings(
  client: KubeClient,
  services: readonly Service[],
  organizations: Organizations,
  signal: AbortSignal,
): Promise<ServiceStanding[]> {
  const list = async (namespace: string | undefined) => {
    const listed = listAll<KubeObject & PipeScaling>(client, { resource: PIPE_SCALINGS, namespace }, signal);
    const scalings = await unlessForbidden(listed.catch(withoutDefinition));
    return scalings?.map(toPipeScalingView);
  };
  const everywhere = await list(undefined);
  const namespaces = [...new Set(services.map(({ namespace }) => namespace))];
  const each = everywhere ? [] : await Promise.all(namespaces.map(list));
  const forbidden = new Set(everywhere ? [] : namespaces.filter((_, at) => each[at] === undefined));
  const scalings = new Map(
    (everywhere ?? each.flatMap((some) => some ?? [])).map((scaling) => [keyOf(scaling.metadata), scaling]),
  );
  return services.map((service) => {
    const scaling = scalings.get(keyOf({ ...service, name: service.id }));
    const oldTier = oldTierOf(scaling, organizations.get(service.organizationId));
    const view = viewOf(service.name, scaling, undefined, oldTier);
    return { service, scaling, view: forbidden.has(service.namespace) ? unread(view, service) : view };
  });
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

function unread(view: RescaleView, { namespace }: Service): RescaleView {
  const message = `You may not list the PipeScalings of the namespace ${namespace}.`;
  return { ...view, state: "unknown", reason: "Forbidden", message };
}
