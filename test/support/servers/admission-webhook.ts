import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { json } from "node:stream/consumers";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";
import { LAST_ROLLOUT_ANNOTATION } from "../../../src/controller/names.ts";
import { GROUP } from "../../../src/crd/names.ts";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { accountName } from "../fixtures/shipped-account.ts";
import type { TestEnvironment } from "../test-environment.ts";

const reviewSchema = z.object({
  request: z.object({
    uid: z.string(),
    name: z.string(),
    resource: z.object({ resource: z.string() }),
    subResource: z.string().optional(),
    dryRun: z.boolean().default(false),
    object: z.object({
      metadata: z.object({ annotations: z.record(z.string(), z.string()).default({}) }),
    }),
  }),
});

export type AdmissionRequest = z.infer<typeof reviewSchema>["request"];

export interface AdmissionResponse {
  readonly allowed: boolean;
  readonly status?: { readonly code: number; readonly message: string };
  /** JSON patch, for a mutating webhook. */
  readonly patch?: readonly object[];
}

/** Rules of the configuration, by the kind that the webhook reviews. */
const RULES = {
  deployments: { apiGroups: ["apps"], apiVersions: ["v1"] },
  replicasets: { apiGroups: ["apps"], apiVersions: ["v1"] },
  "pods/resize": { apiGroups: [""], apiVersions: ["v1"] },
  "pipescalings/status": { apiGroups: [GROUP], apiVersions: ["*"] },
} as const;
export type Reviewed = keyof typeof RULES;
export const ALL_KINDS: readonly Reviewed[] = [
  "deployments",
  "replicasets",
  "pods/resize",
  "pipescalings/status",
];

/** The kind, and the subresource, of a reviewed write. */
export function reviewedKind({ resource: { resource }, subResource }: AdmissionRequest): Reviewed {
  const name = subResource ? `${resource}/${subResource}` : resource;
  return ALL_KINDS.find((each) => each === name) ?? "deployments";
}

type Respond = (request: AdmissionRequest) => AdmissionResponse | Promise<AdmissionResponse>;

export function allow(): AdmissionResponse {
  return { allowed: true };
}

/** A response that denies every write with this code and message. */
export function deny(code: number, message: string): () => AdmissionResponse {
  return () => ({ allowed: false, status: { code, message } });
}

/** Removes the controller's annotation from what it writes. */
export function removeAnnotation({ object }: AdmissionRequest): AdmissionResponse {
  if (object.metadata.annotations[LAST_ROLLOUT_ANNOTATION] === undefined) return allow();
  const path = `/metadata/annotations/${LAST_ROLLOUT_ANNOTATION.replace("/", "~1")}`;
  return { allowed: true, patch: [{ op: "remove", path }] };
}

/**
 * An admission webhook for the controller's writes in the namespace of pipes: to Deployments, or to the kinds that a
 * test names. It allows every write until a test sets `respond`. This takes effect immediately, unlike a change of the
 * webhook configuration.
 */
export class AdmissionWebhook {
  respond: Respond = allow;
  /** The response to dry runs. */
  respondToDryRun: Respond = allow;
  /** Writes of the controller that it has reviewed. */
  readonly requests: AdmissionRequest[] = [];
  readonly #environment: TestEnvironment;
  readonly #kind: string;
  readonly #server: Server;
  #port = 0;
  #dryRuns = 0;

  private constructor(
    environment: TestEnvironment,
    kind: string,
    { cert, key }: ReturnType<typeof certificatePair>,
  ) {
    this.#environment = environment;
    this.#kind = kind;
    this.#server = createServer({ cert, key }, (request, response) => {
      this.#respond(request, response).catch((error: unknown) => {
        // A killed API server aborts its requests.
        if (!request.destroyed || request.complete) throw error;
      });
    });
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reviewed = reviewSchema.parse(await json(request)).request;
    const { patch, ...rest } = await this.#review(reviewed);
    const encoded = patch && {
      patchType: "JSONPatch",
      patch: Buffer.from(JSON.stringify(patch)).toString("base64"),
    };
    const body = {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      response: { uid: reviewed.uid, ...rest, ...encoded },
    };
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(body));
  }

  /**
   * Resolves once the API server calls the webhook.
   *
   * @param pipe name of a Deployment in the namespace, for a dry run
   * @param kinds that it reviews
   */
  static async start(
    environment: TestEnvironment,
    kind: "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
    pipe: string,
    kinds: readonly Reviewed[] = ["deployments"],
  ): Promise<AdmissionWebhook> {
    const pair = certificatePair("webhook");
    const webhook = new AdmissionWebhook(environment, kind, pair);
    await webhook.listen();
    await apply(environment.cluster, [webhook.#configuration(pair.cert, kinds)]);
    await waitFor(() => webhook.#isCalled(pipe), { what: "the API server to call the webhook" });
    return webhook;
  }

  /** Listens, on the same port as before. */
  async listen(): Promise<void> {
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("the webhook has no port");
    this.#port = address.port;
  }

  /** Rejects connections from now on. */
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Removes the configuration, and stops the server. */
  async end(): Promise<void> {
    await kubectl(this.#environment.cluster, [
      "delete",
      this.#kind,
      this.#environment.pipes,
      "--ignore-not-found",
    ]);
    if (this.#server.listening) await this.close();
  }

  #review(request: AdmissionRequest): ReturnType<Respond> {
    if (request.dryRun) {
      this.#dryRuns += 1;
      return this.respondToDryRun(request);
    }
    this.requests.push(request);
    return this.respond(request);
  }

  async #isCalled(pipe: string): Promise<boolean> {
    const before = this.#dryRuns;
    await this.#environment.client.json({
      method: "PATCH",
      path: objectPath(DEPLOYMENTS, this.#environment.pipes, pipe),
      query: { dryRun: "All" },
      patchType: "application/merge-patch+json",
      body: { metadata: { annotations: { "example.com/dry-run": "true" } } },
    });
    return this.#dryRuns > before;
  }

  #configuration(cert: string, kinds: readonly Reviewed[]): object {
    const { pipes, records } = this.#environment;
    const user = `system:serviceaccount:${records}:${accountName("controller")}`;
    return {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: this.#kind,
      metadata: { name: pipes },
      webhooks: [
        {
          name: "pipes.example.com",
          clientConfig: {
            url: `https://127.0.0.1:${this.#port}`,
            caBundle: Buffer.from(cert).toString("base64"),
          },
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": pipes } },
          matchConditions: [
            { name: "controller", expression: `request.dryRun || request.userInfo.username == '${user}'` },
          ],
          rules: kinds.map((kind) => ({ ...RULES[kind], operations: ["UPDATE"], resources: [kind] })),
          timeoutSeconds: 30,
          admissionReviewVersions: ["v1"],
          sideEffects: "None",
        },
      ],
    };
  }
}
