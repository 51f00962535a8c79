import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { openApiDocument } from "../../../../src/api/openapi/document.ts";
import { OPERATIONS } from "../../../../src/api/resources/operations.ts";

/** Programs that read the OpenAPI document, as their users run them: with their defaults. */

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const MODULES = join(ROOT, "node_modules");
const GENERATORS = join(ROOT, "test/generators/node_modules");

const folder = mkdtempSync(join(tmpdir(), "generators-"));

beforeAll(() => {
  if (!existsSync(GENERATORS)) throw new Error("the packages of test/generators are missing: run npm ci");
  writeFileSync(join(folder, "openapi.json"), JSON.stringify(openApiDocument(OPERATIONS)));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function node(program: string, args: readonly string[]) {
  const env = { ...environment, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const { code, stdout, stderr } = await run(process.execPath, [program, ...args], { env, cwd: folder });
  return { code, stdout, output: stdout + stderr };
}

/** Compiles a client next to the generated code, and returns the errors of the compiler. */
async function compile(client: string): Promise<string> {
  const compilerOptions = {
    module: "esnext",
    moduleResolution: "bundler",
    target: "es2024",
    lib: ["es2024", "dom", "dom.iterable"],
    types: [],
    strict: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
  };
  writeFileSync(join(folder, "client.ts"), client);
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["client.ts"] }));
  const { stdout } = await node(join(MODULES, "typescript/bin/tsc"), ["--project", folder]);
  return stdout;
}

describe("openapi-typescript", () => {
  it("generates types whose bodies have one media type and whose reasons are open", async () => {
    const args = ["openapi.json", "--output", "types.ts"];
    expect(await node(join(GENERATORS, "openapi-typescript/bin/cli.js"), args)).toMatchObject({ code: 0 });
    const client = `
      import type { components, operations } from "./types.ts";
      type Progress = components["schemas"]["PipeScalingProgress"];
      type Content = operations["updatePipeScaling"]["requestBody"]["content"];
      export const type: Record<keyof Content, true> = { "application/json": true };
      export const body: Content["application/json"] = { replicaCpuMillicores: 4000 };
      export const reason: Progress["reason"] = "ReasonOfALaterVersion";
      export const failure: Progress["failures"][number]["reason"] = "ReasonOfALaterVersion";
      export const fallback: NonNullable<Progress["fallbacks"]>[number]["reason"] = "ReasonOfALaterVersion";
    `;
    expect(await compile(client)).toBe("");
    expect(await compile(client.replace("replicaCpuMillicores", "replicas"))).toContain("'replicas'");
  });
});

describe("hey-api", () => {
  it("generates a client that authenticates with HTTP Basic and sends JSON", async () => {
    const args = ["--input", "openapi.json", "--output", "hey-api", "--no-log-file"];
    expect(await node(join(GENERATORS, "@hey-api/openapi-ts/bin/run.js"), args)).toMatchObject({ code: 0 });
    const client = `
      import { createClient } from "./hey-api/client";
      import { updatePipeScaling, type ApiKey, type PipeScaling } from "./hey-api";
      const client = createClient({ baseUrl: "https://pipes.example", auth: "id:secret" });
      const path = { organizationId: "o", serviceId: "s" };
      export async function scale(): Promise<PipeScaling | undefined> {
        const { data } = await updatePipeScaling({ client, path, body: { replicaMemoryGb: 16 } });
        return data?.result;
      }
      export const suffix = ({ keySuffix }: ApiKey): string => keySuffix;
    `;
    expect(await compile(client)).toBe("");
  });
});

describe("redocly", () => {
  const lint = async (file: string) => {
    const { stdout } = await node(join(MODULES, "@redocly/cli/bin/cli.js"), ["lint", "--format=json", file]);
    return z.object({ problems: z.array(z.looseObject({ ruleId: z.string() })) }).parse(JSON.parse(stdout))
      .problems;
  };

  it("finds nothing in the document with its recommended rules", async () => {
    expect(await lint("openapi.json")).toEqual([]);
  });

  it("finds a document without a license", async () => {
    const { info, ...rest } = openApiDocument(OPERATIONS);
    const { license: _, ...bare } = info;
    writeFileSync(join(folder, "bare.json"), JSON.stringify({ ...rest, info: bare }));
    expect((await lint("bare.json")).map(({ ruleId }) => ruleId)).toEqual(["info-license"]);
  });
});
