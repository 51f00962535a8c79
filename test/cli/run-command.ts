import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { onTestFinished } from "vitest";
import { sizeOfCores } from "../../src/domain/size.ts";
import type { Client } from "../api/client.ts";
import type { ApiEnvironment } from "../api/environment.ts";
import { fieldsOf, reportStatus, scaledTo } from "../api/statuses.ts";
import type { KeyRecord } from "../support/fixtures/records.ts";
import { MAIN, type RunningProgram, startProgram } from "../support/terminal/program.ts";
import { type Pty, startInPty } from "../support/terminal/pty.ts";

export type EnvironmentVariables = Readonly<Record<string, string>>;

/** Creates a home folder without profiles, which is removed at the end of the test. */
export function emptyHome(): EnvironmentVariables {
  const home = mkdtempSync(join(tmpdir(), "pipe-scaling-home-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  return { XDG_CONFIG_HOME: home };
}

/** The environment variables that a command needs, with a home folder without profiles. */
export function accessTo(
  url: string,
  { keyId, keySecret }: Pick<KeyRecord, "keyId" | "keySecret">,
): EnvironmentVariables {
  return {
    ...emptyHome(),
    PIPE_SCALING_API_URL: url,
    PIPE_SCALING_KEY_ID: keyId,
    PIPE_SCALING_KEY_SECRET: keySecret,
  };
}

/** The two ways to run a command. */
export const WAYS = ["in a pipe", "on a terminal"] as const;
export type Way = (typeof WAYS)[number];

export interface Ended {
  readonly code: number | null;
  /** All visible output. */
  readonly text: string;
}

export function start(way: Way, args: readonly string[], env: EnvironmentVariables): RunningProgram | Pty {
  return way === "in a pipe"
    ? startProgram(args, env)
    : startInPty(process.execPath, [MAIN, ...args], { env });
}

export function textOf(running: RunningProgram | Pty): string {
  return "screen" in running ? running.screen().text : `${running.out()}${running.err()}`;
}

export async function run(
  way: Way,
  words: string | readonly string[],
  env: EnvironmentVariables,
): Promise<Ended> {
  const running = start(way, typeof words === "string" ? words.split(" ") : words, env);
  return { code: await running.exitCode, text: textOf(running) };
}

/** Creates a service whose three pipes all have this size, and waits until the API has it in its cache. */
export async function serviceOf(
  environment: ApiEnvironment,
  send: Client,
  { organizationId, authorization, cores }: { organizationId: string; authorization: string; cores: number },
): Promise<string> {
  const service = await environment.addService(organizationId);
  await environment.addScaling(service, fieldsOf(sizeOfCores(cores)));
  await reportStatus(environment, service, scaledTo(cores));
  const path = `/v1/organizations/${organizationId}/services/${service}/pipesCdcScaling`;
  await waitFor(async () => (await send({ path, authorization })).status === 200, {
    what: "the API to see the service",
    // The key may have a rate limit.
    intervalMs: 300,
  });
  return service;
}
