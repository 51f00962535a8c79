import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../../../src/all-commands.ts";
import { admin } from "../../../../src/cli/admin/admin.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import type { HistoryEntry, PipeScaling, PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import {
  type FakeResponse,
  type ReceivedRequest,
  startFakeHttpServer,
} from "../../../support/fakes/fake-http-server.ts";
import { fakeIo } from "../../../support/fakes/fake-io.ts";
import { historyEntry } from "../../../support/fixtures/history-entry.ts";
import { writeKubeconfig } from "../../../support/fixtures/kubeconfig.ts";
import { serviceRecord } from "../../../support/fixtures/records.ts";

const service = serviceRecord({ organizationId: randomUUID(), namespace: "acme-pipes" });
const ID = service.metadata.name.slice("service-".length);
const SHOW = `\`pipe-scaling admin service show ${ID} --kubeconfig FILE --namespace pipe-scaling-records\``;
const PATH = `/apis/pipes.clouddb.dev/v1beta1/namespaces/acme-pipes/pipescalings/${ID}`;
const ANNOTATION = "pipes.clouddb.dev/ignore-rollout-window-until";

function fieldsOf(cores: number) {
  const size = sizeOfCores(cores);
  return { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
}

/** A service that was scaled from the tier's default of one core to 2, and then to 4. */
const HISTORY = [historyEntry(4), historyEntry(2), historyEntry(1, { source: "TierDefault" })];

function scalingOf(history: readonly HistoryEntry[] = HISTORY, changes: PipeScaling["spec"] = {}) {
  const [newest] = history;
  const status: PipeScalingStatus = { observedGeneration: 3, history: [...history] };
  return {
    metadata: { name: ID, namespace: "acme-pipes", uid: "uid-1", resourceVersion: "7", generation: 3 },
    spec: { ...fieldsOf(4), ...changes },
    status: newest ? { ...status, desired: newest } : status,
  };
}

interface Given {
  /** The PipeScalings returned by consecutive reads; the last one is repeated. If empty, none exists. */
  readonly scalings?: readonly object[];
  readonly onWrite?: () => FakeResponse;
}

async function rollBack(words: string, { scalings = [scalingOf()], onWrite }: Given = {}) {
  const left = [...scalings];
  const respond = ({ method, path }: ReceivedRequest): FakeResponse => {
    if (path.includes("/configmaps/service-")) return { body: service };
    if (method === "PATCH") return onWrite?.() ?? { body: {} };
    const scaling = left.length > 1 ? left.shift() : left[0];
    return scaling ? { body: scaling } : { status: 404, body: { kind: "Status" } };
  };
  const { url, requests } = await startFakeHttpServer(respond);
  const io = fakeIo();
  const spec = { ...COMMANDS, commands: admin };
  const place = ["--kubeconfig", writeKubeconfig(url)];
  const code = await runProgram(
    spec,
    ["admin", "service", "rollback", ID, ...words.split(" "), ...place].filter(Boolean),
    io,
  );
  const writes = requests.filter(({ method }) => method !== "GET");
  return { code, ...io.written, writes };
}

function withoutPath(text: string): string {
  return text.replace(/--kubeconfig \S+/, "--kubeconfig FILE");
}

function conflict(): FakeResponse {
  return {
    status: 409,
    body: { kind: "Status", reason: "Conflict", message: "the object has been modified" },
  };
}

describe("admin service rollback", () => {
  it("sets the previous size with the UID and resource version of the PipeScaling that it read", async () => {
    const { code, out, err, writes } = await rollBack("--output json");
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringMatching(
        new RegExp(
          `^To watch the rescale: pipe-scaling status ${ID} --watch --kubeconfig \\S+ --namespace pipe-scaling-records\n$`,
        ),
      ),
    });
    expect(JSON.parse(out)).toEqual({
      id: ID,
      name: "orders",
      namespace: "acme-pipes",
      from: "4 cpu / 16 Gi",
      to: "2 cpu / 8 Gi",
    });
    expect(writes).toMatchObject([
      {
        path: `${PATH}?fieldManager=pipe-scaling-cli`,
        contentType: "application/merge-patch+json",
        body: {
          metadata: {
            uid: "uid-1",
            resourceVersion: "7",
            annotations: { "pipes.clouddb.dev/scaling-request": null },
          },
          spec: fieldsOf(2),
        },
      },
    ]);
  });

  it("allows rollouts to start outside the rollout window for two hours with --now", async () => {
    const before = Date.now();
    const { code, writes } = await rollBack("--now");
    expect(code).toBe(0);
    expect(writes).toMatchObject([
      { body: { metadata: { annotations: { [ANNOTATION]: expect.any(String) } } } },
    ]);
    const [text = ""] = JSON.stringify(writes).match(/(?<=rollout-window-until":")[^"]+/) ?? [];
    const until = Date.parse(text);
    expect(until - before).toBeGreaterThanOrEqual(2 * 3_600_000);
    expect(until - Date.now()).toBeLessThanOrEqual(2 * 3_600_000);
  });

  it("sets a size that was the tier default, and reports it", async () => {
    const { code, err, writes } = await rollBack("--to 1");
    expect(code).toBe(0);
    expect(err).toContain(
      "The rollback sets it in the PipeScaling, so the tier no longer decides the size.\n",
    );
    expect(writes).toMatchObject([{ body: { spec: fieldsOf(1) } }]);
  });

  it("prints the size and writes nothing with --dry-run", async () => {
    const { code, out, err, writes } = await rollBack("--dry-run");
    expect({ code, err, writes }).toEqual({ code: 0, err: "Dry run: nothing was written.\n", writes: [] });
    expect(out).toMatch(/^FROM +4 cpu \/ 16 Gi\nTO +2 cpu \/ 8 Gi\n/m);
  });

  it("writes nothing during a boost, and says how to end it", async () => {
    const boost = { ...fieldsOf(16), until: new Date(Date.now() + 3_600_000).toISOString() };
    const { code, err, writes } = await rollBack("", { scalings: [scalingOf(HISTORY, { boost })] });
    expect({ code, writes }).toEqual({ code: 1, writes: [] });
    expect(err).toContain(`has a boost to 16 cpu / 64 Gi until ${boost.until}`);
    expect(err).toContain(
      `kubectl patch pipescalings ${ID} --namespace acme-pipes --type merge --patch '{"spec":{"boost":null}}' --kubeconfig `,
    );
    const ended = { boost: { ...boost, until: "2026-01-31T12:00:00Z" } };
    expect((await rollBack("", { scalings: [scalingOf(HISTORY, ended)] })).writes).toHaveLength(1);
  });

  describe("of a service that the maximum of the tier limits", () => {
    const limited = historyEntry(8, { source: "TierLimit" });
    const at16 = (...older: readonly HistoryEntry[]) =>
      scalingOf([limited, historyEntry(16), ...older], fieldsOf(16));

    it("returns to the newest size that the tier allows", async () => {
      const { code, out, err, writes } = await rollBack("", { scalings: [at16(historyEntry(4))] });
      expect({ code, writes }).toMatchObject({ code: 0, writes: [{ body: { spec: fieldsOf(4) } }] });
      expect(out).toMatch(/^FROM +8 cpu \/ 32 Gi\nTO +4 cpu \/ 16 Gi\n/m);
      expect(err).not.toContain("maximum");
    });

    it("writes nothing if only larger sizes are left", async () => {
      const { code, out, err, writes } = await rollBack("", { scalings: [at16()] });
      expect({ code, out, writes }).toEqual({ code: 1, out: "", writes: [] });
      expect(withoutPath(err)).toBe(
        `There is nothing to roll back: the size of service ${ID} is 8 cpu / 32 Gi, and its history has no completed rescale to another size that the tier allows. See ${SHOW} for the history.\n`,
      );
    });

    it.each([
      ["the newest change is observed", at16(historyEntry(4))],
      ["it is not", { ...at16(), spec: fieldsOf(2), status: { ...at16().status, observedGeneration: 2 } }],
    ])("rejects a larger size with --to, if %s", async (_, scaling) => {
      const { code, out, err, writes } = await rollBack("--to 16", { scalings: [scaling] });
      expect({ code, out, writes }).toEqual({ code: 1, out: "", writes: [] });
      expect(err).toBe(
        `The pipes of service ${ID} cannot return to 16 cpu / 64 Gi, because the tier of the organization allows at most 8 cpu / 32 Gi. Choose a smaller size, or move the organization to a larger tier first.\n`,
      );
    });
  });

  it("says that the maximum of the tier may apply to a larger size, which the status does not show", async () => {
    for (const words of ["", "--dry-run"]) {
      const { code, err } = await rollBack(words, {
        scalings: [scalingOf([historyEntry(4), historyEntry(8)])],
      });
      expect(code).toBe(0);
      expect(err).toContain("If this size is above the maximum of the tier, the pipes get that maximum.\n");
    }
  });

  it("reports that no pipe of a suspended service is resized", async () => {
    const { code, err, writes } = await rollBack("", { scalings: [scalingOf(HISTORY, { suspend: true })] });
    expect({ code, writes: writes.length }).toEqual({ code: 0, writes: 1 });
    expect(err).toContain("The service is suspended: no pipe is resized until it is resumed.\n");
  });

  it.each([
    [
      "without a PipeScaling",
      "",
      [],
      `Service ${ID} has no PipeScaling in the namespace acme-pipes, so there is no size to return to. The controller creates it when it sees the first database pipe of the service.\n`,
    ],
    [
      "without a completed rescale to another size",
      "",
      [scalingOf([historyEntry(4), historyEntry(2, { result: "Superseded" })])],
      `There is nothing to roll back: the size of service ${ID} is 4 cpu / 16 Gi, and its history has no completed rescale to another size. See ${SHOW} for the history.\n`,
    ],
    [
      "to a size that is not in the history",
      "--to 8",
      [scalingOf()],
      `There is nothing to roll back: the size of service ${ID} is 4 cpu / 16 Gi, and its history has no completed rescale to 8 cpu / 32 Gi. See ${SHOW} for the history.\n`,
    ],
    [
      "to the current size",
      "--to 4",
      [scalingOf()],
      `There is nothing to roll back: the size of service ${ID} is 4 cpu / 16 Gi. See ${SHOW} for the history.\n`,
    ],
  ])("rejects a rollback %s", async (_, words, scalings, sentence) => {
    const { code, out, err, writes } = await rollBack(words, { scalings });
    expect({ code, out, writes }).toEqual({ code: 1, out: "", writes: [] });
    expect(withoutPath(err)).toBe(sentence);
  });

  it("retries the write if only the status has changed since the read", async () => {
    const [first, second] = [scalingOf(), scalingOf()];
    const newer = { ...second, metadata: { ...second.metadata, resourceVersion: "8" } };
    const responses = [conflict(), { body: {} }];
    const { code, writes } = await rollBack("", {
      scalings: [first, first, newer],
      onWrite: () => responses.shift() ?? conflict(),
    });
    expect(code).toBe(0);
    expect(writes).toMatchObject([
      { body: { metadata: { resourceVersion: "7" } } },
      { body: { metadata: { resourceVersion: "8" } } },
    ]);
  });

  it.each([
    ["is changed", { resourceVersion: "8", generation: 4 }],
    ["is recreated", { resourceVersion: "8", uid: "uid-2" }],
  ])("stops with an error message if the PipeScaling %s concurrently", async (_, change) => {
    const changed = { ...scalingOf(), metadata: { ...scalingOf().metadata, ...change } };
    const { code, out, err, writes } = await rollBack("", {
      scalings: [scalingOf(), scalingOf(), changed],
      onWrite: conflict,
    });
    expect({ code, out, writes: writes.length }).toEqual({ code: 1, out: "", writes: 1 });
    expect(withoutPath(err)).toBe(
      `The PipeScaling of service ${ID} was changed at the same time, and this command wrote nothing: see ${SHOW}, then run the command again if the rollback is still needed.\n`,
    );
  });
});
