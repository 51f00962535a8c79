import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import { check } from "./check.ts";
import { ApiCaller, type Credentials } from "./http.ts";
import { scalingPath } from "./rescale.ts";
import type { Seeded } from "./seed.ts";
import type { Stage } from "./stage.ts";

const refusal = z.object({ error: z.string().min(1), status: z.int() });

interface Attempt {
  readonly outcome: string;
  readonly status: number;
  readonly by: ApiCaller;
  readonly path: string;
  readonly body: unknown;
}

/** Sends requests that must fail: each gets the documented error, and nothing changes. */
export async function refusalsStep(stage: Stage, caller: ApiCaller, seeded: Seeded): Promise<void> {
  const { observer, narration, signal } = stage;
  const { acme, globex } = seeded;
  const look = () => observer.allSpecs();
  const before = await look();
  const wrong: Credentials = { keyId: acme.key.keyId, keySecret: "not-the-secret" };
  const attempts: readonly Attempt[] = [
    {
      outcome: "A size between two steps",
      status: 400,
      by: caller,
      path: scalingPath(acme),
      body: { replicaCpuMillicores: 3500 },
    },
    {
      outcome: "A wrong secret",
      status: 401,
      by: new ApiCaller(caller.baseUrl, wrong, signal),
      path: scalingPath(acme),
      body: { replicaCpuMillicores: 8000 },
    },
    {
      outcome: "Another tenant's service",
      status: 404,
      by: caller,
      path: scalingPath(globex),
      body: { replicaCpuMillicores: 8000 },
    },
    {
      outcome: "Another tenant's service under the caller's own organization",
      status: 404,
      by: caller,
      path: scalingPath({ organizationId: acme.organizationId, serviceId: globex.serviceId }),
      body: { replicaCpuMillicores: 8000 },
    },
  ];
  for (const attempt of attempts) await expectRefusal(narration, attempt);
  const after = await look();
  check(isDeepStrictEqual(after, before), "a rejected request changed a resource");
}

export function expectRefusal(narration: Stage["narration"], attempt: Attempt): Promise<void> {
  return narration.step(attempt.outcome, async () => {
    const reply = await attempt.by.patch(attempt.path, attempt.body);
    check(
      reply.status === attempt.status && refusal.safeParse(reply.body).success,
      `${attempt.outcome} got ${reply.status} and not ${attempt.status}: ${reply.text}`,
    );
    return {
      outcome: `${attempt.outcome} is rejected: ${reply.status}`,
      details: [reply.text],
      result: undefined,
    };
  });
}
