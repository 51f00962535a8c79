import { once } from "node:events";
import { createServer, type Server } from "node:https";
import { json } from "node:stream/consumers";
import { type CertificatePair, certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { GROUP, PLURAL } from "../../src/crd/names.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import { objectPath } from "../../src/kube/paths.ts";
import type { ApiResponse } from "./client.ts";
import { PIPE_SCALINGS } from "./environment.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

/** The status that the webhook returns when it denies a request. The API server adds the rest. */
type DenialStatus = { readonly code?: number; readonly message?: string };

const environment = setUpEnvironment("admission");
const { serviceId, path, admin } = setUpTenant(environment);
const api = setUpApi(environment);
let webhook: Server;
let denial: DenialStatus = {};

const review = z.object({ request: z.object({ uid: z.string() }) });

beforeAll(async () => {
  const pair = certificatePair("webhook");
  webhook = await startWebhook(pair);
  await apply(environment.cluster, [configuration(pair, webhook)]);
  await waitFor(async () => !(await isAllowed()), { what: "the webhook to be called" });
});

afterAll(async () => {
  webhook?.close();
  const kinds = "validatingwebhookconfiguration,validatingadmissionpolicy,validatingadmissionpolicybinding";
  await kubectl(environment.cluster, ["delete", kinds, environment.pipes, "--ignore-not-found"]);
});

/** A user's admission webhook that denies everything. */
async function startWebhook({ cert, key }: CertificatePair): Promise<Server> {
  const server = createServer({ cert, key }, async (request, response) => {
    const { uid } = review.parse(await json(request)).request;
    const denied = { uid, allowed: false, status: denial };
    response.setHeader("Content-Type", "application/json");
    response.end(
      JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: denied }),
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
    metadata: { name: environment.pipes },
    webhooks: [
      {
        name: "sizes.example.com",
        clientConfig: {
          url: `https://127.0.0.1:${port}`,
          caBundle: Buffer.from(cert).toString("base64"),
        },
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": environment.pipes } },
        rules: [{ apiGroups: [GROUP], apiVersions: ["*"], operations: ["UPDATE"], resources: [PLURAL] }],
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
      },
    ],
  };
}

/** A user's admission policy that denies everything with this reason, before webhooks are called. */
function policy(reason: string): object[] {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const metadata = { name: environment.pipes };
  const resourceRules = [
    { apiGroups: [GROUP], apiVersions: ["*"], operations: ["UPDATE"], resources: [PLURAL] },
  ];
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": environment.pipes } };
  return [
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicy",
      metadata,
      spec: {
        matchConstraints: { resourceRules, namespaceSelector },
        validations: [{ expression: "false", message: "sizes are frozen", reason }],
      },
    },
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata,
      spec: { policyName: environment.pipes, validationActions: ["Deny"] },
    },
  ];
}

/** Returns true if nothing denies a change. */
async function isAllowed(): Promise<boolean> {
  return (await denialOf()) === undefined;
}

/** The error that the API server returns for a change. */
async function denialOf(): Promise<KubeApiError | undefined> {
  try {
    await environment.admin.json({
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, environment.pipes, serviceId),
      query: { dryRun: "All" },
      patchType: "application/merge-patch+json",
      body: { metadata: { annotations: { asked: "yes" } } },
    });
    return undefined;
  } catch (error) {
    if (error instanceof KubeApiError) return error;
    throw error;
  }
}

function patch(): Promise<ApiResponse> {
  const { authorization } = admin;
  const headers = { "Content-Type": "application/json" };
  return api.send({ method: "PATCH", path, authorization, headers, body: '{"replicaCpuMillicores":4000}' });
}

test.each([
  ["without a reason", {}],
  ["with a reason", { message: "sizes are frozen" }],
  ["as forbidden", { code: 403, message: "sizes are frozen" }],
  ["as invalid", { code: 422, message: "sizes are frozen" }],
])(
  "PATCH returns 400 if an admission webhook denies the size %s, and does not reveal the reason",
  async (_how, reason) => {
    denial = reason;
    const response = await patch();
    expect(response).toMatchObject({ status: 400, body: { status: 400 } });
    expect(response.text).not.toContain("frozen");
    expect((await environment.scaling(serviceId)).spec).toEqual({});
  },
);

test("PATCH returns 503 while the admission webhook fails", async () => {
  denial = { code: 503, message: "sizes are frozen" };
  expect((await patch()).status).toBe(503);
  webhook.closeAllConnections();
  webhook.close();
  await once(webhook, "close");
  expect((await patch()).status).toBe(503);
});

test.each([
  ["Invalid", 422],
  ["Forbidden", 403],
  ["RequestEntityTooLarge", 413],
])("PATCH returns 400 if an admission policy denies the size with the reason %s", async (reason, code) => {
  await apply(environment.cluster, policy(reason));
  await waitFor(async () => (await denialOf())?.code === code, { what: "the policy to deny changes" });
  const response = await patch();
  expect(response).toMatchObject({ status: 400, body: { status: 400 } });
  expect(response.text).not.toContain("frozen");
});
