import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import {
  BOOST_END,
  DOCS,
  desk,
  follow,
  freePort,
  own,
  PORT,
  page,
  splitPage,
  stepsOf,
  typeAll,
  withoutChance,
} from "./tutorial.ts";

/** The how-to pages, in an order in which each can run after the previous ones. */
const HOW_TO = [
  "dry-run",
  "initial-load",
  "roll-back",
  "give-a-key",
  "change-tier",
  "suspend",
  "rollout-windows",
  "find-out-why",
  "back-up-and-restore",
  "trace-a-rescale",
  "boost",
  "monitor",
  "size-in-git",
  "behind-a-proxy",
  "change-limits-and-tiers",
  "scrape-your-services",
  "with-terraform",
];
/** One needs a chart of a pipe (test/integration/take-over.slow.test.ts), the other two clusters (many-clusters.slow.test.ts). */
const FOLLOWED_ELSEWHERE = ["many-clusters", "take-over-pipes"];
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
const TIMEOUT_MS = 600_000;

it("docs/tutorial.md and the pages in docs/how-to after it work in an empty cluster, and show the actual output", {
  timeout: TIMEOUT_MS,
}, async () => {
  const followed = [...HOW_TO, ...FOLLOWED_ELSEWHERE].map((name) => `${name}.md`);
  expect(readdirSync(join(DOCS, "how-to")).toSorted()).toEqual(followed.toSorted());
  const [before, after] = splitPage("tutorial.md", "## Break it");
  const [boost] = splitPage("how-to/boost.md", BOOST_END);
  const pages = HOW_TO.flatMap((name) => stepsOf(name === "boost" ? boost : page(`how-to/${name}.md`)));
  const eventful = pages.flatMap((step) =>
    step.commands.includes("create -f sizes.yaml") ? [own(LOSS), step, own(RETURN)] : [step],
  );
  await follow([...stepsOf(before), ...eventful, own(BACK), ...stepsOf(after)]);
});

it("docs/tutorial.md shows that another program has the port of the API, and continues with another port", {
  timeout: TIMEOUT_MS,
}, async () => {
  const { binaries } = await sharedCluster();
  const other = createServer((_request, response) => response.end("ok\n")).listen(0, "127.0.0.1");
  onTestFinished(() => {
    other.close();
    other.closeAllConnections();
  });
  await once(other, "listening");
  const { port: taken } = z.object({ port: z.number() }).parse(other.address());
  const [before, after] = splitPage("tutorial.md", "## Rescale");
  const start = stepsOf(before);
  const serve = start.findIndex(({ commands }) => commands.includes(`port=${PORT}`));
  const { commands = "", shown = "" } = start[serve] ?? {};
  // A person sees the error and continues. The shell of this test would end, and read the log too early.
  const first = `{ ${commands.replace(PORT, String(taken))}} || true\nwait "$api" || true\ntail -n 1 api.log\n`;
  const again = commands.replace(PORT, await freePort());
  const rest = [...start.slice(serve + 1), ...stepsOf(after)];
  const steps = [...start.slice(0, serve), own(first), own(again), ...rest];
  const { code, printed } = await typeAll(
    desk(binaries.dir),
    steps.map((step) => step.commands),
  );
  expect(code, printed.at(-1)).toBe(0);
  expect(printed[serve]).not.toContain(shown);
  expect(withoutChance(printed[serve] ?? "")).toContain(
    `port ${taken} is in use by another program: stop it or choose another port`,
  );
  expect(printed[serve + 1]).toContain(shown.trim());
});
