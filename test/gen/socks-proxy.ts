import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

const VERSION = 5;
const DONE = Buffer.from([VERSION, 0]);
/** Version, done, nothing, and an address that means none. */
const CONNECTED = Buffer.from([VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0]);

export interface SocksProxy {
  readonly url: string;
  readonly tunnels: readonly string[];
}

/** A SOCKS5 proxy (RFC 1928) without authentication, as `ssh -D` is one, to whose machine all names lead. */
export async function startSocksProxy(): Promise<SocksProxy> {
  const tunnels: string[] = [];
  const server = createServer(async (near) => {
    near.on("error", () => undefined);
    onTestFinished(() => {
      near.destroy();
    });
    await once(near, "readable").then(() => near.read());
    near.write(DONE);
    await once(near, "readable");
    const request: unknown = near.read();
    if (!Buffer.isBuffer(request)) throw new Error("no request");
    const port = request.readUInt16BE(request.length - 2);
    // Version, connect, nothing, 3 for a name, its length, the name, the port.
    tunnels.push(`${request.subarray(5, -2).toString()}:${port}`);
    tunnel(near, port);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
  });
  const address = server.address();
  return { url: `socks5://127.0.0.1:${typeof address === "object" ? address?.port : ""}`, tunnels };
}

function tunnel(near: Socket, port: number): void {
  const far = connect(port, "127.0.0.1", () => {
    near.write(CONNECTED);
    near.pipe(far).pipe(near);
  });
  far.on("error", () => near.destroy());
  near.on("close", () => far.destroy());
}
