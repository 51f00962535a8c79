import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { reservePorts } from "@pipe-scaling/local-cluster/ports";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { expect, it, onTestFinished } from "vitest";
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
const TIMEOUT_MS = 300_000;

function page(path: string): string {
  return readFileSync(DOCS + path, "utf8");
}

/** A step without output in a page. */
function own(commands: string): Step {
  return { commands, shown: undefined };
}

/** Runs all steps in a new checkout, and compares the output with the pages. */
async function follow(steps: readonly Step[]): Promise<void> {
  const { binaries } = await sharedCluster();
  // Reserves ports, so that no concurrent test takes them before the page starts its processes.
  const { ports, release } = await reservePorts();
  onTestFinished(release);
  const free = Object.values(ports);
  const withFreePorts = (text: string) =>
    PORTS.reduce((replaced, port, index) => replaced.replaceAll(port, String(free[index])), text);
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
  expect(readdirSync(`${DOCS}how-to`).toSorted()).toEqual(HOW_TO.map((name) => `${name}.md`).toSorted());
  const [before = "", after = ""] = page("tutorial.md").split("## Break it");
  const pages = HOW_TO.flatMap((name) => stepsOf(page(`how-to/${name}.md`)));
  const eventful = pages.flatMap((step) =>
    step.commands.includes("create -f sizes.yaml") ? [own(LOSS), step, own(RETURN)] : [step],
  );
  await follow([...stepsOf(before), ...eventful, own(BACK), ...stepsOf(after)]);
});
