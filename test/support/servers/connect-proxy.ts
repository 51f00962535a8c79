import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect } from "node:net";
import type { CertificatePair } from "@pipe-scaling/local-cluster/certificate";
import { onTestFinished } from "vitest";

export interface ConnectProxy {
  readonly url: string;
  /** Host, port and credentials of each requested tunnel. */
  readonly tunnels: readonly { readonly to: string; readonly authorization: string | undefined }[];
}

/**
 * An HTTP CONNECT proxy that resolves all names to this machine, until the end of the test.
 *
 * @param options `refusal`: status of the response to each CONNECT request, if the proxy rejects them
 */
export async function startConnectProxy({
  refusal,
  tls,
}: {
  readonly refusal?: number;
  readonly tls?: CertificatePair;
} = {}): Promise<ConnectProxy> {
  const tunnels: { to: string; authorization: string | undefined }[] = [];
  const refuse: RequestListener = (_, response) => {
    response.writeHead(500).end("this proxy only supports CONNECT");
  };
  const server = tls ? createTlsServer({ ...tls }, refuse) : createServer(refuse);
  server.on("connect", ({ url = "", headers }, near) => {
    tunnels.push({ to: url, authorization: headers["proxy-authorization"] });
    near.on("error", () => undefined);
    if (refusal !== undefined) {
      near.end(`HTTP/1.1 ${refusal} No\r\n\r\n`);
      return;
    }
    const far = connect(Number(url.split(":").at(-1)), "127.0.0.1", () => {
      near.write("HTTP/1.1 200 Connection established\r\n\r\n");
      near.pipe(far).pipe(near);
    });
    far.on("error", () => near.destroy());
    near.on("close", () => far.destroy());
    onTestFinished(() => {
      near.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  return {
    url: `${tls ? "https" : "http"}://127.0.0.1:${typeof address === "object" ? address?.port : ""}`,
    tunnels,
  };
}
