import { API_FIELD_MANAGER, API_VERSION, KIND, PIPE_SCALINGS } from "../../crd/names.ts";
import {
  BOOST_REQUEST_ANNOTATION,
  formatScalingRequest,
  REQUEST_ANNOTATION,
} from "../../crd/scaling-request.ts";
import { boostFields, sizeFields } from "../../crd/size-fields.ts";
import type { Boost } from "../../domain/boost.ts";
import type { Size } from "../../domain/size.ts";
import type { KubeClient } from "../../kube/client.ts";
import { unlessCode } from "../../kube/errors.ts";
import { objectPath } from "../../kube/paths.ts";
import { type PipeScalingResource, type PipeScalingView, toPipeScalingView } from "./views.ts";

/** The API request for a size or a boost. An annotation records it in the same write. */
export interface SizeRequest {
  readonly requestId: string;
  /** Resource ID of the API key. */
  readonly apiKey: string;
  readonly requestedAt: string;
}

/** The calls to the cluster about one PipeScaling: the writes of a size and of a boost, and a read past the cache. */
export class PipeScalingWriter {
  readonly #client: Pick<KubeClient, "json">;

  constructor(client: Pick<KubeClient, "json">) {
    this.#client = client;
  }

  /**
   * Makes a server-side apply of both fields of the size and the annotation, and of nothing else. With the uid, it
   * never creates the object, which must not exist for a service without pipes.
   *
   * @throws KubeApiError 409, or 422 on metadata.uid, if the object was deleted or replaced
   * @throws KubeUnreachableError if there was no response; the outcome is unknown
   */
  async write({ metadata }: PipeScalingView, size: Size, request: SizeRequest): Promise<PipeScalingView> {
    const { name, uid, namespace = "" } = metadata;
    const spec = sizeFields(size);
    const annotations = { [REQUEST_ANNOTATION]: formatScalingRequest({ ...request, ...spec }) };
    return toPipeScalingView(
      await this.#client.json<PipeScalingResource>({
        method: "PATCH",
        path: objectPath(PIPE_SCALINGS, namespace, name),
        query: { fieldManager: API_FIELD_MANAGER, force: true, fieldValidation: "Strict" },
        patchType: "application/apply-patch+yaml",
        body: { apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace, uid, annotations }, spec },
      }),
    );
  }

  /**
   * Sets or removes the boost and its annotation, and nothing else. Makes a merge patch, because a server-side apply
   * without the size would give up the size, which this field manager applied before. The patch also replaces or
   * removes a boost of another writer.
   *
   * @throws KubeApiError 409, 404, or 422 on metadata.uid, if the object was deleted or replaced
   * @throws KubeUnreachableError if there was no response; the outcome is unknown
   */
  async writeBoost(
    { metadata }: PipeScalingView,
    boost: Boost | undefined,
    request: SizeRequest,
  ): Promise<PipeScalingView> {
    const { name, uid, namespace = "" } = metadata;
    const fields = boost ? boostFields(boost) : null;
    const annotation = fields && formatScalingRequest({ ...request, ...fields });
    return toPipeScalingView(
      await this.#client.json<PipeScalingResource>({
        method: "PATCH",
        path: objectPath(PIPE_SCALINGS, namespace, name),
        query: { fieldManager: API_FIELD_MANAGER, fieldValidation: "Strict" },
        patchType: "application/merge-patch+json",
        body: {
          metadata: { uid, annotations: { [BOOST_REQUEST_ANNOTATION]: annotation } },
          spec: { boost: fields },
        },
      }),
    );
  }

  /** Reads the object live, past the cache. */
  async read(namespace: string, name: string): Promise<PipeScalingView | undefined> {
    const path = objectPath(PIPE_SCALINGS, namespace, name);
    const resource = await unlessCode(404, this.#client.json<PipeScalingResource>({ path }), undefined);
    return resource && toPipeScalingView(resource);
  }
}
