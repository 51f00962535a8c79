import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect } from "node:net";
import { onTestFinished } from "vitest";
import type { CertificatePair } from "../fixtures/certificate.ts";

export interface ConnectProxy {
  readonly url: string;
  /** Each host and port that a tunnel was asked for to, and with which credentials. */
  readonly tunnels: readonly { readonly to: string; readonly authorization: string | undefined }[];
}

/** A proxy as companies have them, to whose own machine all names lead. It ends with the test. @param options `refusal`: the status that it answers in place of making a tunnel */
export async function startConnectProxy({
  refusal,
  tls,
}: {
  readonly refusal?: number;
  readonly tls?: CertificatePair;
} = {}): Promise<ConnectProxy> {
  const tunnels: { to: string; authorization: string | undefined }[] = [];
  const refuse: RequestListener = (_, response) => {
    response.writeHead(500).end("it only makes tunnels");
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
