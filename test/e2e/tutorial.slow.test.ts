import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { reservePorts } from "@pipe-scaling/local-cluster/ports";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { desk, type Step, stepsOf, typeAll, withoutChance } from "./tutorial.ts";

const DOCS = fileURLToPath(new URL("../../docs/", import.meta.url));
/** Ports of the tutorial, which another program may use. */
const PORTS = ["8080", "9090", "9091"];
/** The how-to pages, in an order in which each can run after the previous ones. */
const HOW_TO = [
  "dry-run",
  "roll-back",
  "give-a-key",
  "change-tier",
  "suspend",
  "rollout-windows",
  "find-out-why",
  "back-up-and-restore",
  "trace-a-rescale",
  "monitor",
  "size-in-git",
  "behind-a-proxy",
  "change-limits-and-tiers",
];
/** This page needs a chart of a pipe, so test/integration/take-over.slow.test.ts follows it. */
const FOLLOWED_ELSEWHERE = ["take-over-pipes"];
/** Commands between a backup and its restoration: they stop the controller and delete the records. */
const LOSS = `kill "$controller"
wait "$controller"
kubectl delete configmaps,secrets --namespace pipe-scaling-records --selector pipes.clouddb.dev/resource
kubectl delete psc --all --all-namespaces
`;
const RETURN = `node src/main.ts controller --ops-port 0 > controller.log 2>&1 &
controller=$!
kubectl wait --for=condition=Ready psc/"$service" --namespace acme-pipes --timeout=1m
`;
/** The tier and the size before the section "Break it" of the tutorial. */
const BACK = `pipe-scaling admin organization update "$organization" --tier basic
pipe-scaling scaling set "$service" --cores 4 --watch
`;
/** Ends the processes of a page that does not reach its last section. */
const ENDING = `trap 'wait "$api" || true; kill "$controller"; wait "$controller"' EXIT
`;
const TIMEOUT_MS = 300_000;

function page(path: string): string {
  return readFileSync(DOCS + path, "utf8");
}

/** A step without output in a page. */
function own(commands: string): Step {
  return { commands, shown: undefined };
}

/**
 * Replaces the ports of the tutorial with free ones, which no concurrent test takes before the page starts its processes.
 *
 * @param taken port of the API, if another program has it
 */
async function portReplacer(taken?: number): Promise<(text: string) => string> {
  const { ports, release } = await reservePorts();
  onTestFinished(release);
  const [api = 0, ...others] = Object.values(ports);
  const used = [taken ?? api, ...others];
  return (text) =>
    PORTS.reduce((replaced, port, index) => replaced.replaceAll(port, String(used[index])), text);
}

/** Runs all steps in a new checkout, and compares the output with the pages. */
async function follow(steps: readonly Step[]): Promise<void> {
  const { binaries } = await sharedCluster();
  const withFreePorts = await portReplacer();
  const { code, printed } = await typeAll(
    desk(binaries.dir),
    steps.map(({ commands }) => withFreePorts(commands)),
  );
  expect(code, printed.at(-1)).toBe(0);
  for (const [index, { commands, shown }] of steps.entries()) {
    const output = printed[index] ?? "";
    if (shown === undefined) continue;
    expect.soft(withoutChance(output), `${commands}printed:\n${output}`).toBe(withoutChance(shown));
  }
}

it("docs/tutorial.md and the pages in docs/how-to after it work in an empty cluster, and show the actual output", {
  timeout: TIMEOUT_MS,
}, async () => {
  const followed = [...HOW_TO, ...FOLLOWED_ELSEWHERE].map((name) => `${name}.md`);
  expect(readdirSync(`${DOCS}how-to`).toSorted()).toEqual(followed.toSorted());
  const [before = "", after = ""] = page("tutorial.md").split("## Break it");
  const pages = HOW_TO.flatMap((name) => stepsOf(page(`how-to/${name}.md`)));
  const eventful = pages.flatMap((step) =>
    step.commands.includes("create -f sizes.yaml") ? [own(LOSS), step, own(RETURN)] : [step],
  );
  await follow([...stepsOf(before), ...eventful, own(BACK), ...stepsOf(after)]);
});

it("docs/tutorial.md stops at its first check if another program has the port of the API and responds with ok", {
  timeout: TIMEOUT_MS,
}, async () => {
  const { binaries } = await sharedCluster();
  const other = createServer((_request, response) => response.end("ok\n")).listen(0, "127.0.0.1");
  onTestFinished(() => {
    other.close();
    other.closeAllConnections();
  });
  await once(other, "listening");
  const { port } = z.object({ port: z.number() }).parse(other.address());
  const withPorts = await portReplacer(port);
  const [start = ""] = page("tutorial.md").split("The controller finds three pipes");
  const { dir, env } = desk(binaries.dir);
  const steps = [own(ENDING), ...stepsOf(start)].map(({ commands }) => withPorts(commands));
  const { code, printed } = await typeAll({ dir, env }, steps);
  expect(code).not.toBe(0);
  expect(printed).toHaveLength(steps.length);
  expect(printed.at(-1)).not.toContain("pipe-scaling API\n");
  const log = readFileSync(join(dir, "api.log"), "utf8").trimEnd().split("\n");
  expect(log.at(-1)).toContain(`port ${port} is in use by another program: stop it or choose another port`);
});
