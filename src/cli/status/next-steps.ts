import { DATABASE_TYPE, RETRY_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../controller/names.ts";
import { PLURAL } from "../../crd/names.ts";
import { PROGRAM } from "../command.ts";
import { recordsFlag } from "../common-options.ts";
import type { ServiceStanding } from "./services.ts";

/**
 * What a person would do next, a sentence each, with the commands.
 *
 * @param records their namespace
 */
export function nextSteps({ service, view }: ServiceStanding, records: string): string[] {
  const { id, namespace } = service;
  const where = recordsFlag(records);
  const object = `${PLURAL} ${id} --namespace ${namespace}`;
  switch (view.state) {
    case "scaled":
      return [];
    case "propagating":
      return [`See how it goes on: ${PROGRAM} status ${id} --watch${where}`];
    case "suspended":
      return [`Let it go on: kubectl patch ${object} --type merge --patch '{"spec":{"suspend":false}}'`];
    case "unknown":
      return view.reason === "NoPipeScaling"
        ? [
            `The controller makes one as soon as it sees a Deployment in the namespace ${namespace} with the labels ${SERVICE_LABEL}=${id} and ${TYPE_LABEL}=${DATABASE_TYPE}.`,
            `If there is one, see whether the controller runs: ${PROGRAM} doctor${where}`,
          ]
        : [`See whether the controller runs: ${PROGRAM} doctor${where}`];
    case "failed":
      return view.lines.some(({ state }) => state === "failed")
        ? [
            ...view.lines
              .filter(({ state }) => state === "failed")
              .slice(0, 1)
              .map(({ name }) => `Look closer: kubectl describe deployment ${name} --namespace ${namespace}`),
            `Once it is put right, have it tried again: kubectl annotate ${object} --overwrite ${RETRY_ANNOTATION}="$(date -u +%Y-%m-%dT%H:%M:%SZ)"`,
          ]
        : [`See what is wrong with the records: ${PROGRAM} doctor${where}`];
  }
}
