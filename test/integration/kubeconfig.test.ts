import { join } from "node:path";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { tryKubectl } from "@pipe-scaling/local-cluster/kubectl";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { KubeConfigError } from "../../src/kube/errors.ts";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { startConnectProxy } from "../support/servers/connect-proxy.ts";
import { startWitnessServer } from "../support/servers/witness-server.ts";
import { FORMS, type Place, REFUSED_FORMS } from "./kubeconfig-forms.ts";

const PATH = "/usr/bin:/bin";

beforeEach(() => {
  const none = [
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
  ];
  for (const name of none) vi.stubEnv(name, undefined);
  return () => {
    vi.unstubAllEnvs();
  };
});

interface Servers {
  readonly place: Place;
  /** Requests to both servers. */
  witnessed(): object[];
  /** Connections through the proxy. */
  tunnels(): number;
}

async function startServers(): Promise<Servers> {
  const pair = certificatePair("server");
  const secure = await startWitnessServer(pair);
  const plain = await startWitnessServer(undefined);
  const proxy = await startConnectProxy();
  const place = {
    folder: temporaryFolder(),
    authority: pair.cert,
    proxy: proxy.url,
    server: secure.url,
    plainServer: plain.url,
  };
  return {
    place,
    witnessed: () => [...secure.requests, ...plain.requests].map((request) => ({ ...request })),
    tunnels: () => proxy.tunnels.length,
  };
}

it.each(FORMS)(
  "the API server sees the same request from us as from kubectl with $title",
  async ({ write }) => {
    const { place, witnessed, tunnels } = await startServers();
    const { folder } = place;
    const variables = write(place);
    const path = variables ? undefined : join(folder, "config");

    const env = { PATH, HOME: folder, ...variables };
    const flags = path === undefined ? [] : ["--kubeconfig", path];
    const { code, stderr } = await tryKubectl([...flags, "get", "--raw", "/version"], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const expected = witnessed();
    const ofKubectl = tunnels();
    expect(expected).toHaveLength(1);

    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    const client = new KubeClient(await connect(path));
    onTestFinished(() => client.close());
    await client.json({ path: "/version" });
    const [, ours] = witnessed();
    expect(ours).toEqual(expected[0]);
    expect(tunnels()).toBe(ofKubectl * 2);
  },
);

it.each(REFUSED_FORMS)("we refuse, as kubectl does, $title", async ({ write, problem }) => {
  const { place, witnessed } = await startServers();
  const { folder } = place;
  write(place);
  const path = join(folder, "config");
  const kubectl = await tryKubectl(["--kubeconfig", path, "get", "--raw", "/version"], {
    PATH,
    HOME: folder,
  });
  expect(kubectl).toMatchObject({ code: 1, stderr: expect.stringMatching(/^error: /) });

  const error = await connect(path).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(KubeConfigError);
  expect(error).toHaveProperty("message", expect.stringMatching(problem));
  expect(witnessed()).toEqual([]);
});
