import type { Condition } from "../../crd/pipe-scaling.ts";
import type { Io } from "../io.ts";
import { painter } from "../style.ts";
import { frame } from "../view/frame.ts";
import type { RescaleView } from "../view/rescale-view.ts";
import { padded, printable, wrapped } from "../view/text.ts";
import { roughly } from "../view/time.ts";
import { nextSteps } from "./next-steps.ts";
import { type Organizations, sinceOf } from "./rows.ts";
import type { ServiceStanding } from "./services.ts";

const LABEL_COLUMNS = 14;

export interface Surroundings {
  readonly organizations: Organizations;
  /** Namespace of the records. */
  readonly records: string;
  readonly nowMs: number;
}

/** A service as it stands, for people: the frame of the live view, and below it whatever else is known. */
export function printService(
  io: Pick<Io, "out" | "terminal">,
  standing: ServiceStanding,
  { organizations, records, nowMs }: Surroundings,
): void {
  const { terminal } = io;
  // In a pipe nothing is cut off.
  const columns = terminal.output ? terminal.columns() : Number.POSITIVE_INFINITY;
  const canvas = { columns, colors: terminal.colors, rows: Number.POSITIVE_INFINITY };
  const paint = painter(io);
  const steps = nextSteps(standing, records).map((step) => ["NEXT", step] as const);
  const told = [...detailsOf(standing, organizations, nowMs), ...steps];
  const details = told.flatMap(([label, text]) => {
    const width = Math.max(20, columns - LABEL_COLUMNS);
    const [first = "", ...rest] = wrapped(printable(text), width);
    const head = `${paint("bold", label)}${padded(label, LABEL_COLUMNS).slice(label.length)}`;
    return [`${head}${first}`, ...rest.map((line) => `${" ".repeat(LABEL_COLUMNS)}${line}`)];
  });
  io.out([...frame(standing.view, nowMs, canvas), "", ...details].map((line) => `${line}\n`).join(""));
}

function detailsOf(
  standing: ServiceStanding,
  organizations: Organizations,
  nowMs: number,
): (readonly [label: string, text: string])[] {
  const { service, view, scaling } = standing;
  const organization = organizations.get(service.organizationId);
  const since = sinceOf(standing);
  const ofOrganization = organization
    ? `${organization.name} (${organization.id}), tier ${organization.tier}`
    : `${service.organizationId}, which has no record that can be read`;
  const state = [view.state, ...(since ? [`for ${roughly(nowMs - since.getTime())}`] : []), view.reason];
  return [
    ["SERVICE", service.id],
    ["ORGANIZATION", ofOrganization],
    ["NAMESPACE", service.namespace],
    ["STATE", state.filter((text) => text !== "").join(", ")],
    ...(view.requestId === undefined ? [] : ([["REQUEST", view.requestId]] as const)),
    ...conditionsOf(scaling?.status.conditions ?? [], saidByFrame(view)).map(
      (text) => ["CONDITION", text] as const,
    ),
    ...(scaling?.status.failures ?? []).map(
      ({ pipe, reason, message, attempts, at }) =>
        [
          "FAILURE",
          `${pipe}: ${reason}, ${attempts === 1 ? "tried once" : `tried ${attempts} times`}, ${roughly(nowMs - Date.parse(at))} ago: ${message}`,
        ] as const,
    ),
  ];
}

/** While it is on its way the frame shows each pipe in place of the message. */
function saidByFrame({ state, message }: RescaleView): string {
  return state === "propagating" ? "" : message;
}

/** Those that say the same are told once, and what is said already not again. */
function conditionsOf(conditions: readonly Condition[], said: string): string[] {
  const words = ({ reason, message }: Condition) =>
    message === said ? `(${reason})` : `(${reason}): ${message}`;
  return [...Map.groupBy(conditions, words)].map(
    ([text, each]) => `${each.map(({ type, status }) => `${type}=${status}`).join(", ")} ${text}`,
  );
}
