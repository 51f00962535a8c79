import { once } from "node:events";
import { createServer, type Server } from "node:https";
import { json } from "node:stream/consumers";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { GROUP, PLURAL } from "../../src/crd/names.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import { objectPath } from "../../src/kube/paths.ts";
import { type CertificatePair, certificatePair } from "../support/fixtures/certificate.ts";
import type { Answer } from "./client.ts";
import { createWorld, PIPE_SCALINGS, type RunningApi, type World } from "./world.ts";

/** What the webhook adds to its no; the API server completes it. */
type Verdict = { readonly code?: number; readonly message?: string };

let world: World;
let api: RunningApi;
let webhook: Server;
let service: string;
let path: string;
let authorization: string;
let verdict: Verdict = {};

const review = z.object({ request: z.object({ uid: z.string() }) });

beforeAll(async () => {
  world = await createWorld("admission");
  const organizationId = await world.addOrganization();
  service = await world.addService(organizationId);
  ({ authorization } = await world.addKey({ organizationId }));
  await world.addScaling(service, {}, 2);
  path = `/v1/organizations/${organizationId}/services/${service}/pipesCdcScaling`;
  api = await world.startReadyApi();
  await waitFor(async () => (await api.ask({ path, authorization })).status === 200, {
    what: "the service to be known",
  });
  const pair = certificatePair("webhook");
  webhook = await startWebhook(pair);
  await apply(world.cluster, [configuration(pair, webhook)]);
  await waitFor(async () => !(await isAllowed()), { what: "the webhook to be asked" });
});

afterAll(async () => {
  await api?.stop();
  webhook?.close();
  if (world) {
    await kubectl(world.cluster, [
      "delete",
      "validatingwebhookconfiguration",
      world.pipes,
      "--ignore-not-found",
    ]);
    await world.remove();
  }
});

/** Somebody's admission webhook, that allows nothing. */
async function startWebhook({ cert, key }: CertificatePair): Promise<Server> {
  const server = createServer({ cert, key }, async (request, response) => {
    const { uid } = review.parse(await json(request)).request;
    const answer = { uid, allowed: false, status: verdict };
    response.setHeader("Content-Type", "application/json");
    response.end(
      JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function configuration({ cert }: CertificatePair, server: Server): object {
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: world.pipes },
    webhooks: [
      {
        name: "sizes.example.com",
        clientConfig: {
          url: `https://127.0.0.1:${port}`,
          caBundle: Buffer.from(cert).toString("base64"),
        },
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": world.pipes } },
        rules: [{ apiGroups: [GROUP], apiVersions: ["*"], operations: ["UPDATE"], resources: [PLURAL] }],
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
      },
    ],
  };
}

/** Whether a change would be let through. */
async function isAllowed(): Promise<boolean> {
  try {
    await world.admin.json({
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, world.pipes, service),
      query: { dryRun: "All" },
      patchType: "application/merge-patch+json",
      body: { metadata: { annotations: { asked: "yes" } } },
    });
    return true;
  } catch (error) {
    if (error instanceof KubeApiError) return false;
    throw error;
  }
}

function patch(): Promise<Answer> {
  const headers = { "Content-Type": "application/json" };
  return api.ask({ method: "PATCH", path, authorization, headers, body: '{"replicaCpuMillicores":4000}' });
}

test.each([
  ["with no more than that", {}],
  ["with a reason", { message: "sizes are frozen" }],
  ["as forbidden", { code: 403, message: "sizes are frozen" }],
  ["as invalid", { code: 422, message: "sizes are frozen" }],
])(
  "answers 400 to a size that an admission webhook denies %s, and keeps the reason inside",
  async (_how, said) => {
    verdict = said;
    const answer = await patch();
    expect(answer).toMatchObject({ status: 400, body: { status: 400 } });
    expect(answer.text).not.toContain("frozen");
    expect((await world.scaling(service)).spec).toEqual({});
  },
);

test("answers 503 while the webhook fails, because nobody knows what it would say", async () => {
  verdict = { code: 503, message: "sizes are frozen" };
  expect((await patch()).status).toBe(503);
  webhook.closeAllConnections();
  webhook.close();
  await once(webhook, "close");
  expect((await patch()).status).toBe(503);
});
