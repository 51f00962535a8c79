import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import * as z from "zod";

const TOKEN_ID = "authentication.kubernetes.io/credential-id";

const event = z.object({
  verb: z.string(),
  user: z.object({ extra: z.record(z.string(), z.array(z.string())).optional() }),
  objectRef: z.object({ resource: z.string(), name: z.string().optional() }),
});

/** The audit log of the API server, which distinguishes two processes with the same account by their tokens. */
export class Audit {
  readonly #log: string;
  readonly #policy: string;

  /** @param folder a new folder of the test */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    this.#log = join(folder, "audit.log");
    this.#policy = join(folder, "audit-policy.yaml");
    writeFileSync(
      this.#policy,
      stringify({
        apiVersion: "audit.k8s.io/v1",
        kind: "Policy",
        omitStages: ["RequestReceived"],
        rules: [
          { level: "None", verbs: ["get", "list", "watch"] },
          { level: "None", resources: [{ group: "coordination.k8s.io" }] },
          { level: "Metadata" },
        ],
      }),
    );
  }

  get apiServerArgs(): Readonly<Record<string, string>> {
    return { "audit-log-path": this.#log, "audit-policy-file": this.#policy, "audit-log-mode": "blocking" };
  }

  /** Write requests, except those for Leases, made with the token of this kubeconfig. */
  writesOf(kubeconfig: string): string[] {
    const [, payload = ""] = /token: \S+\.(\S+)\./.exec(readFileSync(kubeconfig, "utf8")) ?? [];
    const { jti } = z
      .object({ jti: z.string() })
      .parse(JSON.parse(Buffer.from(payload, "base64url").toString()));
    return readFileSync(this.#log, "utf8")
      .split("\n")
      .filter((line) => line.includes(`JTI=${jti}`))
      .map((line) => event.parse(JSON.parse(line)))
      .filter(({ user }) => user.extra?.[TOKEN_ID]?.includes(`JTI=${jti}`))
      .map(({ verb, objectRef }) => `${verb} ${objectRef.resource} ${objectRef.name ?? ""}`);
  }
}
