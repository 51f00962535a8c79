import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { TcpProxy } from "../../tcp-proxy.ts";
import { waitFor } from "../../wait.ts";

/** A connection through a proxy to a server that sends back what it receives. */
async function echo(): Promise<{ proxy: TcpProxy; client: Socket; heard: () => string }> {
  const server = createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const proxy = await TcpProxy.listen(typeof address === "object" ? (address?.port ?? 0) : 0);
  const client = connect(proxy.port, "127.0.0.1");
  onTestFinished(() => {
    client.destroy();
    proxy.close();
    server.close();
  });
  let text = "";
  client.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  await once(client, "connect");
  return { proxy, client, heard: () => text };
}

it("a proxy forwards everything that arrived while it was frozen exactly once, even if it is thawed twice", async () => {
  const { proxy, client, heard } = await echo();
  client.write("one ");
  await waitFor(() => heard() === "one ", { what: "the first" });
  proxy.freeze();
  client.write("two ");
  proxy.thaw();
  proxy.thaw();
  client.write("three");
  await waitFor(() => heard().endsWith("three"), { what: "the last" });
  expect(heard()).toBe("one two three");
});
