import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";
import { formatTable } from "../../../src/cli/output.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";
import { check } from "./check.ts";
import type { ApiCaller, Reply } from "./http.ts";
import { ACME_PIPES, DATABASE_PIPES, LOAD_PIPE, OTHER_PIPE, REPLACED_PIPE } from "./objects.ts";
import { isRolledOut, type ObservedScaling, type Observer, resourcesOf } from "./observer.ts";
import { type ManagedWorkload, trespasses } from "./ownership.ts";
import { followRollout, hasSize, kubectlWait } from "./rollout.ts";
import type { Seeded } from "./seed.ts";
import type { Stage } from "./stage.ts";

const FOUR_CORES = sizeOfCores(4);
/** For a machine that is busy with tests; normally a fraction of a second. */
const MOST_LATE_SECONDS = 10;
const REQUESTED = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };

const organizations = z.object({
  requestId: z.guid(),
  status: z.literal(200),
  result: z.array(z.object({ id: z.guid(), name: z.string() })).length(1),
});
const scaled = z.object({
  requestId: z.guid(),
  status: z.literal(200),
  result: z.object({ replicaCpuMillicores: z.int(), replicaMemoryGb: z.int() }),
});

export function scalingPath({
  organizationId,
  serviceId,
}: {
  organizationId: string;
  serviceId: string;
}): string {
  return `/v1/organizations/${organizationId}/services/${serviceId}/pipesCdcScaling`;
}

export function organizationsStep({ narration }: Stage, caller: ApiCaller, { acme }: Seeded): Promise<void> {
  return narration.step("GET /v1/organizations", async () => {
    const reply = await caller.get("/v1/organizations");
    const seen = organizations.parse(reply.body).result[0];
    check(seen?.id === acme.organizationId, "the API returned an organization that is not that of the key");
    return {
      outcome: "GET /v1/organizations returns the organization of the key: 200",
      details: [reply.text],
      result: undefined,
    };
  });
}

/** Waits until GET returns the size that every pipe runs, which the API learns from its watch. */
export function expectEffective(caller: ApiCaller, seeded: Seeded, cores: number): Promise<Reply> {
  return waitFor(
    async () => {
      const reply = await caller.get(scalingPath(seeded.acme));
      const { result } = scaled.parse(reply.body);
      check(
        result.replicaCpuMillicores === cores * 1000 && result.replicaMemoryGb === cores * 4,
        `GET pipesCdcScaling returned ${reply.text} although every pipe has ${cores} cores`,
      );
      return reply;
    },
    // A key may send ten requests in ten seconds.
    { what: `GET pipesCdcScaling to return ${cores} cores`, intervalMs: 1000, timeoutMs: 10_000 },
  );
}

/** Sends one PATCH, and follows the rescale until the last pipe is done. */
export async function rescaleStep(stage: Stage, caller: ApiCaller, seeded: Seeded): Promise<void> {
  const { cluster, observer, narration, signal } = stage;
  const { serviceId } = seeded.acme;
  await expectEffective(caller, seeded, 1);
  const before = await observer.databasePipes();
  const podsBefore = await podsOf(observer);
  const otherBefore = await observer.pipe(OTHER_PIPE);
  const otherPods = await observer.pods(ACME_PIPES, OTHER_PIPE);

  await narration.step("PATCH pipesCdcScaling", async () => {
    const reply = await caller.patch(scalingPath(seeded.acme), REQUESTED);
    check(reply.status === 200, `PATCH pipesCdcScaling returned ${reply.status}: ${reply.text}`);
    const { result } = scaled.parse(reply.body);
    check(
      result.replicaCpuMillicores === FOUR_CORES.cpuMillicores,
      `PATCH accepted another size: ${reply.text}`,
    );
    return {
      outcome: `PATCH …/pipesCdcScaling ${JSON.stringify(REQUESTED)} is accepted: 200`,
      details: [reply.text],
      result: undefined,
    };
  });

  const waiting = kubectlWait(stage, serviceId, ACME_PIPES);
  const following = followRollout(stage, serviceId, { size: FOUR_CORES, reason: "Scaled" });
  const [waited, followed] = await Promise.all([waiting, following]);
  for (const pipe of waited.pipes) {
    check(
      isRolledOut(pipe) && hasSize(pipe, FOUR_CORES),
      `kubectl wait returned before ${pipe.metadata.name} was rolled out`,
    );
  }
  const lateSeconds = (waited.returnedAt - followed.lastPipeAt) / 1000;
  check(
    lateSeconds < MOST_LATE_SECONDS,
    `kubectl wait returned only ${lateSeconds.toFixed(1)} s after the last pipe was done`,
  );
  narration.seen(`kubectl wait --for=condition=Ready psc/${serviceId} returned together with the last pipe`);

  await podsStep(stage, podsBefore, followed.scaling);
  await narration.step("Comparing the workloads", async () => {
    const after = await untouched(stage, before);
    const load = after.find(({ metadata }) => metadata.name === LOAD_PIPE);
    const other = await observer.pipe(OTHER_PIPE);
    check(
      other.metadata.resourceVersion === otherBefore.metadata.resourceVersion &&
        (await observer.pods(ACME_PIPES, OTHER_PIPE)).join() === otherPods.join(),
      `${OTHER_PIPE} has another type, but was changed`,
    );
    await expectEffective(caller, seeded, 4);
    return {
      outcome: `All database pipes have 4 cpu and 16 Gi, ${followed.seconds.toFixed(1)} s after the request`,
      details: [
        sizesTable(before, [...after, other], otherBefore),
        `managedFields: the controller owns only the size and its annotation; ${OTHER_PIPE} is unchanged`,
        `${LOAD_PIPE}: currentRevision and updateRevision are ${load?.status?.updateRevision}`,
        await kubectl(cluster, ["get", "psc", "-A"], { signal }),
      ],
      result: undefined,
    };
  });
}

/**
 * Waits until nothing beside the size differs, and the controller owns nothing else. It leaves the partition of a
 * StatefulSet to its owner with its last write, right after the resource is ready.
 */
function untouched(
  { observer, signal }: Stage,
  before: readonly ManagedWorkload[],
): Promise<readonly ManagedWorkload[]> {
  return waitFor(
    async () => {
      const after = await observer.databasePipes();
      const wrong = after.flatMap((pipe, index) => {
        const was = before[index];
        return was ? trespasses(was, pipe) : [`${pipe.metadata.name} is new`];
      });
      check(wrong.length === 0, `the controller changed more than the size:\n${wrong.join("\n")}`);
      return after;
    },
    { what: "the controller to own nothing but the size", timeoutMs: 10_000, signal },
  );
}

type PodsByPipe = ReadonlyMap<string, string>;

async function podsOf(observer: Observer): Promise<PodsByPipe> {
  const pods = DATABASE_PIPES.map(
    async (name) => [name, (await observer.pods(ACME_PIPES, name)).join()] as const,
  );
  return new Map(await Promise.all(pods));
}

/** Checks that only the pods of the pipe that cannot be resized in place were replaced. */
function podsStep(
  { observer, narration }: Stage,
  before: PodsByPipe,
  { status }: ObservedScaling,
): Promise<void> {
  return narration.step("Comparing the pods", async () => {
    const after = await podsOf(observer);
    const replaced = DATABASE_PIPES.filter((name) => before.get(name) !== after.get(name));
    check(replaced.join() === REPLACED_PIPE, `the pods of these pipes were replaced: ${replaced.join(", ")}`);
    const fallback = status?.pipes?.fallbacks?.find(({ pipe }) => pipe === REPLACED_PIPE);
    check(
      fallback !== undefined,
      `the resource has no reason why the pods of ${REPLACED_PIPE} were replaced`,
    );
    const method = status?.pipes?.resizedBy?.[`statefulset/${LOAD_PIPE}`];
    check(method === "InPlace", `the resource says that ${LOAD_PIPE} was resized by ${method}`);
    const kept = DATABASE_PIPES.filter((name) => name !== REPLACED_PIPE);
    return {
      outcome: `${new Intl.ListFormat("en-US").format(kept)} were resized in place: they have the same pods as before, without a restart`,
      details: [
        `${REPLACED_PIPE} cannot be resized in place, so it fell back to a rollout: ${fallback?.message}`,
      ],
      result: undefined,
    };
  });
}

/** Prints requests and limits before and after. */
function sizesTable(
  before: readonly ManagedWorkload[],
  after: readonly ManagedWorkload[],
  other: ManagedWorkload,
): string {
  const was = new Map([...before, other].map((pipe) => [pipe.metadata.name, sizeText(pipe)]));
  return formatTable([
    ["PIPE", "CPU, MEMORY, LIMIT", "AFTER"],
    ...after.map((pipe) => {
      const { name } = pipe.metadata;
      const now = sizeText(pipe);
      return [name, was.get(name) ?? "-", now === was.get(name) ? "unchanged" : now];
    }),
  ]);
}

function sizeText(pipe: ManagedWorkload): string {
  const { cpu, memory, memoryLimit } = resourcesOf(pipe);
  return `${cpu}, ${memory}, ${memoryLimit}`;
}
