import type { Route } from "./route.ts";

/** Where an API server is, and who we are to it. */
export interface Access {
  /** What it was read from, as the subject of a sentence. */
  readonly origin: string;
  readonly server: string;
  /** The proxy on the way. */
  readonly route: Route;
  /** As they are now: tokens and certificates are renewed behind our back. */
  credentials(): Promise<Credentials>;
}

export interface Credentials {
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
  /** Value of the header. */
  readonly authorization?: string | undefined;
}
