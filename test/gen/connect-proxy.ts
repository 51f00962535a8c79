import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { onTestFinished } from "vitest";

export interface ConnectProxy {
  readonly url: string;
  /** Each host and port that a tunnel was asked for to, and with which credentials. */
  readonly tunnels: readonly { readonly to: string; readonly authorization: string | undefined }[];
}

/** A proxy as companies have them, to whose own machine all names lead. It ends with the test. @param refusal of tunnels */
export async function startConnectProxy(refusal?: number): Promise<ConnectProxy> {
  const tunnels: { to: string; authorization: string | undefined }[] = [];
  const server = createServer((_, response) => {
    response.writeHead(500).end("it only makes tunnels");
  });
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
  return { url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`, tunnels };
}
