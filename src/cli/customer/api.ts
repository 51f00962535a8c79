import type { Io } from "../io.ts";
import { type AccessValues, accessOf } from "./access.ts";
import { ApiClient } from "./client.ts";
import { ProfileFile, profilePath } from "./profile-file.ts";
import { wait } from "./wait.ts";

/** Does something with the API, on a connection of its own. */
export async function withApi<T>(
  values: AccessValues,
  io: Io,
  act: (api: ApiClient) => Promise<T>,
): Promise<T> {
  const access = accessOf(values, () => new ProfileFile(profilePath(io.env)).read());
  // Loads the HTTP client: not for --help.
  const { openTransport } = await import("./transport.ts");
  const transport = openTransport(access, { env: io.env });
  const tell = (sentence: string) => io.err(`${sentence}\n`);
  try {
    return await act(new ApiClient({ access, transport, tell, wait, signal: io.signal }));
  } finally {
    await transport.close();
  }
}
