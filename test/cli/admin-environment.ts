import { expect } from "vitest";
import type * as z from "zod";
import { COMMANDS } from "../../src/all-commands.ts";
import { admin } from "../../src/cli/admin/admin.ts";
import { runProgram } from "../../src/cli/program.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { objectPath, type Resource } from "../../src/kube/paths.ts";
import { type ApiEnvironment, createApiEnvironment } from "../api/environment.ts";
import { fakeIo } from "../support/fakes/fake-io.ts";

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Settings of the simulated terminal. */
type IoOptions = NonNullable<Parameters<typeof fakeIo>[0]>;

/** Runs the admin commands in this process, in the test file's own namespaces. */
export class AdminTestEnvironment {
  readonly environment: ApiEnvironment;

  constructor(environment: ApiEnvironment) {
    this.environment = environment;
  }

  static async create(name: string): Promise<AdminTestEnvironment> {
    return new AdminTestEnvironment(await createApiEnvironment(name));
  }

  /** The flags for the cluster and the namespace of the records. */
  get clusterFlags(): readonly string[] {
    return ["--kubeconfig", this.environment.cluster.kubeconfig, "--namespace", this.environment.records];
  }

  async run(words: string | readonly string[], ioOptions: IoOptions = {}): Promise<Ended> {
    const io = fakeIo(ioOptions);
    const spec = { ...COMMANDS, commands: admin };
    const given = typeof words === "string" ? words.split(" ") : words;
    const code = await runProgram(spec, [...given, ...this.clusterFlags], io);
    return { code, ...io.written };
  }

  /** Runs a command that must succeed, and returns the JSON that it prints. */
  async json<T>(schema: z.ZodType<T>, words: string | readonly string[]): Promise<T> {
    const given = typeof words === "string" ? words.split(" ") : words;
    const { code, out, err } = await this.run([...given, "--output", "json"]);
    expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
    return schema.parse(JSON.parse(out));
  }

  /** Returns the current object, or `undefined` if it does not exist. */
  async object<T extends KubeObject>(
    resource: Resource,
    name: string,
    namespace = this.environment.records,
  ): Promise<T | undefined> {
    try {
      return await this.environment.admin.json<T>({ path: objectPath(resource, namespace, name) });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  remove(): Promise<void> {
    return this.environment.remove();
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === 404;
}
