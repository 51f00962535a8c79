import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import * as z from "zod";

const event = z.object({
  verb: z.string(),
  user: z.object({ username: z.string() }),
  objectRef: z
    .object({
      namespace: z.string().default(""),
      resource: z.string(),
      subresource: z.string().optional(),
    })
    .optional(),
  annotations: z.record(z.string(), z.string()).default({}),
});

/** A call of an account for a resource. */
export interface AuditedCall {
  /** Empty for a call for all namespaces. */
  readonly namespace: string;
  readonly verb: string;
  /** With the subresource, if there is one. */
  readonly resource: string;
  readonly isAllowed: boolean;
}

/** The audit log of an API server, for a cluster that is started with its arguments. */
export class AuditLog implements Disposable {
  readonly #dir = mkdtempSync(join(tmpdir(), "pipe-scaling-audit-"));

  get apiServerArgs(): Readonly<Record<string, string>> {
    const policy = join(this.#dir, "policy.yaml");
    // At this stage a call is not authorized yet.
    const rules = [{ level: "Metadata", omitStages: ["RequestReceived"] }];
    writeFileSync(policy, stringify({ apiVersion: "audit.k8s.io/v1", kind: "Policy", rules }));
    return { "audit-policy-file": policy, "audit-log-path": join(this.#dir, "audit.log") };
  }

  callsOf(namespace: string, account: string): readonly AuditedCall[] {
    const user = `system:serviceaccount:${namespace}:${account}`;
    const lines = readFileSync(join(this.#dir, "audit.log"), "utf8").split("\n");
    return lines
      .slice(0, -1)
      .map((line) => event.parse(JSON.parse(line)))
      .flatMap(({ verb, user: { username }, objectRef, annotations }) => {
        if (username !== user || !objectRef) return [];
        const { resource, subresource, namespace } = objectRef;
        const name = subresource === undefined ? resource : `${resource}/${subresource}`;
        const isAllowed = annotations["authorization.k8s.io/decision"] === "allow";
        return [{ namespace, verb, resource: name, isAllowed }];
      });
  }

  [Symbol.dispose](): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
