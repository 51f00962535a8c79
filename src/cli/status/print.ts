import { toPipeScaling } from "../../api/resources/pipe-scaling/schema.ts";
import { DATABASE_TYPE, RETRY_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../controller/names.ts";
import { PLURAL } from "../../crd/names.ts";
import type { FailureReason } from "../../crd/reasons.ts";
import type { Io } from "../io.ts";
import { kubectlCommand, type Place, programCommand } from "../options.ts";
import type { Row } from "../output.ts";
import { frame } from "../view/render.ts";
import { describeBoost, rowOfView } from "../view/rescale-view.ts";
import { counted, labeled, lineWidth, padded, painter, UNBROKEN } from "../view/text.ts";
import { roughly } from "../view/time.ts";
import { sinceOf } from "./scaling-view.ts";
import type { ServiceStatus } from "./services.ts";

export const TABLE_COLUMNS = [
  ...["name", "organization", "desired", "effective", "pipes", "state", "since", "reason"],
];

/** The further columns of the wide table. */
export const WIDE_COLUMNS = ["boost", "inPlace", "fallbacks", "requestId"];

/** A row of the table of all services. */
export function tableRow(status: ServiceStatus): Row {
  const { service, organization, view, scaling, nowMs } = status;
  const since = sinceOf(scaling, nowMs);
  return {
    name: service.name,
    organization: organization?.name ?? service.organizationId,
    ...rowOfView(view),
    since: since && roughly(nowMs - since.getTime()),
    reason: view.reason || undefined,
    inPlace: view.pipes.inPlace,
    fallbacks: view.fallbacks.map(({ pipe, reason }) => `${pipe}=${reason}`),
    requestId: view.requestId,
  };
}

/** For programs: names and sizes as in the API and the PipeScaling. */
export function dataRow(status: ServiceStatus): Row {
  const { service, organization, view, scaling, nowMs } = status;
  const { id, name, namespace, organizationId } = service;
  const { state, reason, message, source, boost, requestId, startedAt, completedAt, retryAt } = view;
  const { conditions = [], failures = [], limits } = scaling?.status ?? {};
  return {
    id,
    name,
    namespace,
    organizationId,
    organization: organization?.name,
    tier: organization?.tier,
    state,
    reason,
    message,
    since: sinceOf(scaling, nowMs),
    desired: view.desired && toPipeScaling(view.desired),
    source,
    boost: boost && { ...toPipeScaling(boost.size), until: boost.until },
    effective: view.effective && toPipeScaling(view.effective),
    pipes: { ...view.pipes, pending: view.pending, ...methodsOf(status) },
    requestId,
    startedAt,
    completedAt,
    retryAt,
    limits,
    conditions,
    failures,
  };
}

/** Returns how pipes were resized; empty if none was resized in place or fell back to a rollout. */
function methodsOf({ view: { pipes, resizedBy, fallbacks } }: ServiceStatus): Row {
  return fallbacks.length > 0 || pipes.inPlace ? { resizedBy, fallbacks } : {};
}

const LABEL_COLUMNS = 14;

/** One service for people: the frame of the live view, its details, and the next steps. */
export function printService(io: Pick<Io, "out" | "terminal">, status: ServiceStatus, place: Place): void {
  const columns = lineWidth(io);
  const paint = painter(io);
  const labelOf = (name: string) => paint("bold", name) + padded(name, LABEL_COLUMNS).slice(name.length);
  const details = detailsOf(status).flatMap(([name, text]) => labeled(labelOf(name), text, columns));
  const steps = nextSteps(status, place).flatMap((step) => labeled(labelOf("NEXT"), step, UNBROKEN));
  const lines = [...frame(status.view, status.nowMs, { columns, paint }), "", ...details, ...steps];
  io.out(lines.map((line) => `${line}\n`).join(""));
}

function detailsOf(status: ServiceStatus): (readonly [label: string, text: string])[] {
  const { service, organization, view, scaling, nowMs } = status;
  const { conditions = [], failures = [] } = scaling?.status ?? {};
  const since = sinceOf(scaling, nowMs);
  const state = [view.state, since ? `for ${roughly(nowMs - since.getTime())}` : "", view.reason];
  const details: (readonly [string, string | undefined])[] = [
    ["SERVICE", service.id],
    [
      "ORGANIZATION",
      organization
        ? `${organization.name} (${organization.id}), tier ${organization.tier}`
        : `${service.organizationId}, whose record is missing or malformed`,
    ],
    ["NAMESPACE", service.namespace],
    ["STATE", state.filter((text) => text !== "").join(", ")],
    ["BOOST", view.boost && describeBoost(view.boost)],
    ["REQUEST", view.requestId],
    ["CONDITIONS", conditions.map((each) => `${each.type}=${each.status} (${each.reason})`).join(", ")],
    ...failures.map(({ pipe, reason, message, attempts, at }): readonly [string, string] => {
      const when = `${counted(attempts, "attempt")}, ${roughly(nowMs - Date.parse(at))} ago`;
      return ["FAILURE", `${pipe}: ${reason}, ${when}: ${message}`];
    }),
  ];
  return details.flatMap(([label, text]) => (text ? [[label, text]] : []));
}

/** The next steps for a person, one sentence each, with the commands. */
export function nextSteps(status: ServiceStatus, place: Place): string[] {
  const { service, view } = status;
  const { id, namespace } = service;
  const object = `${PLURAL} ${id} --namespace ${namespace}`;
  const doctor = programCommand(place, "doctor");
  switch (view.state) {
    case "scaled":
      return [];
    case "propagating": {
      const watch = `Watch the progress: ${programCommand(place, `status ${id} --watch`)}`;
      if (view.reason !== "NotObservedYet") return [watch];
      return [`If this stays, check that the controller runs: ${doctor}`, watch];
    }
    case "suspended": {
      const words = `patch ${object} --type merge --patch '{"spec":{"suspend":false}}'`;
      return [`Resume: ${kubectlCommand(place, words)}`];
    }
    case "unknown":
      if (view.reason !== "NoPipeScaling") return [`Check that the controller runs: ${doctor}`];
      return [
        `The controller creates the PipeScaling when it sees a Deployment or StatefulSet in the namespace ${namespace} with the labels ${SERVICE_LABEL}=${id} and ${TYPE_LABEL}=${DATABASE_TYPE}.`,
        `If there is one, check that the controller runs: ${doctor}`,
      ];
    case "failed": {
      const failed = failedPipe(status);
      if (failed === undefined) return [`Check the records: ${doctor}`];
      // The name of a StatefulSet in the status already includes the kind: `statefulset/…`.
      const workload = failed.includes("/") ? failed : `deployment ${failed}`;
      const describe = `describe ${workload} --namespace ${namespace}`;
      const retry = `annotate ${object} --overwrite ${RETRY_ANNOTATION}="$(date -u +%Y-%m-%dT%H:%M:%SZ)"`;
      return [
        `Find the cause: ${kubectlCommand(place, describe)}`,
        `After you have corrected it, retry: ${kubectlCommand(place, retry)}`,
      ];
    }
  }
}

const FAILED: ReadonlySet<string> = new Set(["Failed", "Unsizable", "Retrying"]);

/** With these reasons, the status may still have pipes that failed before. */
const OF_RECORDS: ReadonlySet<string> = new Set<FailureReason>([
  "UnknownService",
  "UnknownOrganization",
  "UnknownTier",
  "MalformedRecord",
  "WrongNamespace",
]);

/** Returns the name of the pipe that the conditions name first; `undefined` if a record is the problem. */
function failedPipe({ view, scaling }: ServiceStatus): string | undefined {
  if (OF_RECORDS.has(view.reason)) return undefined;
  const [first] = scaling?.status.failures ?? [];
  return first?.pipe ?? view.pending.find(({ state }) => FAILED.has(state))?.name;
}
