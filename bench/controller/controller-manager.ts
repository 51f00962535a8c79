import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { parseAllDocuments, stringify } from "yaml";
import * as z from "zod";
import { collectionPath, DEPLOYMENTS, objectPath } from "../../src/kube/paths.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { pipeDeployment } from "../objects.ts";
import { BASELINE_PIPES, type ControllerWorld } from "./world.ts";

/** The limits of requests for each controller of the controller manager. */
export interface ClientLimits {
  readonly name: "default" | "raised";
  readonly qps: number;
  readonly burst: number;
}

/** The defaults of kube-controller-manager. */
export const DEFAULT_LIMITS: ClientLimits = { name: "default", qps: 20, burst: 30 };
export const RAISED_LIMITS: ClientLimits = { name: "raised", qps: 1000, burst: 2000 };

const COMPONENT = "kube-controller-manager";

/** With default limits, the controller manager first completes what is left of the rollouts of 3,000 Deployments. */
const TIMEOUT_MS = 10 * 60_000;

/** Restarts the controller manager with other limits; returns when it works. */
export async function restartControllerManager(world: ControllerWorld, limits: ClientLimits): Promise<void> {
  await world.cluster.kill(COMPONENT);
  // kwokctl starts components again with the arguments in this file.
  const file = join(world.cluster.dir, "kwok.yaml");
  const documents = parseAllDocuments(readFileSync(file, "utf8")).map((each) =>
    withLimits(each.toJS(), limits),
  );
  writeFileSync(file, documents.map((each) => stringify(each)).join("---\n"));
  await world.cluster.revive();
  await answers(world);
}

const configuration = z.looseObject({
  components: z.array(z.looseObject({ name: z.string(), args: z.array(z.string()) })).optional(),
});

function withLimits(document: unknown, { qps, burst }: ClientLimits): object {
  const { components, ...rest } = configuration.parse(document);
  if (!components) return rest;
  const limited = components.map((component) => {
    if (component.name !== COMPONENT) return component;
    const args = component.args.filter((arg) => !arg.startsWith("--kube-api-"));
    return { ...component, args: [...args, `--kube-api-qps=${qps}`, `--kube-api-burst=${burst}`] };
  });
  return { ...rest, components: limited };
}

/** Waits until the Deployment controller has seen a new Deployment, outside of the namespace of pipes. */
async function answers({ admin }: ControllerWorld): Promise<void> {
  const name = "probe";
  const path = objectPath(DEPLOYMENTS, BASELINE_PIPES, name);
  const body = pipeDeployment(name, BASELINE_PIPES, name, { replicas: 0 });
  await admin.json({ method: "POST", path: collectionPath(DEPLOYMENTS, BASELINE_PIPES), body });
  const isSeen = async () => (await admin.json<Deployment>({ path })).status?.observedGeneration === 1;
  await waitFor(isSeen, { what: "the Deployment controller to answer", timeoutMs: TIMEOUT_MS });
  await admin.json({ method: "DELETE", path });
}
