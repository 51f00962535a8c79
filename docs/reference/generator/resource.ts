import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  IGNORE_WINDOW_ANNOTATION,
  LAST_ROLLOUT_ANNOTATION,
  RETRY_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../../src/controller/names.ts";
import { crdManifest } from "../../../src/crd/manifest.ts";
import { API_FIELD_MANAGER, CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { REQUEST_ANNOTATION } from "../../../src/crd/scaling-request.ts";
import { API_KEY_SECRET_TYPE, ORGANIZATION_LABEL, RESOURCE_LABEL } from "../../../src/records/labels.ts";
import { block, code, sections, table } from "./markdown.ts";
import { REASON_TEXTS } from "./reasons.ts";
import { FIELD_COLUMNS, fieldRows, type Schema } from "./schema.ts";

interface Crd {
  readonly spec: {
    readonly group: string;
    readonly names: {
      readonly kind: string;
      readonly plural: string;
      readonly shortNames: string[];
      readonly categories: string[];
    };
    readonly versions: readonly [
      {
        readonly name: string;
        readonly additionalPrinterColumns: readonly {
          readonly name: string;
          readonly jsonPath: string;
          readonly priority?: number;
        }[];
        readonly schema: {
          readonly openAPIV3Schema: Schema & {
            readonly properties: { readonly spec: SpecSchema; readonly status: Schema };
          };
        };
      },
    ];
  };
}

interface SpecSchema extends Schema {
  readonly "x-kubernetes-validations": readonly { readonly message: string }[];
}

const CONDITIONS = [
  [
    "Ready",
    "True: every pipe runs the desired size by a completed rollout. It is about size: a pod that dies later does not undo it. Unknown: suspended.",
  ],
  [
    "Reconciling",
    "Pipes are on their way, or are about to be; time is all that it takes. There only while it holds.",
  ],
  [
    "Stalled",
    "Somebody has to do something; the message says what. There only while it holds, and never beside Reconciling.",
  ],
] as const;

const NAMES = [
  [SERVICE_LABEL, "label of a Deployment", "people", "Id of the service whose pipe it is."],
  [TYPE_LABEL, "label of a Deployment", "people", `${code(DATABASE_TYPE)} makes it a pipe.`],
  [
    CONTAINER_ANNOTATION,
    "annotation of a Deployment",
    "people",
    "Which container is the pipe, where there are several.",
  ],
  [
    LAST_ROLLOUT_ANNOTATION,
    "annotation of a Deployment",
    "controller",
    "The last rollout: its size, start, attempt and request, and the last good size. JSON. It counts only on the Deployment that it was written to, and while nobody else has changed it.",
  ],
  [
    RETRY_ANNOTATION,
    "annotation of a PipeScaling",
    "people",
    "A time, such as `2026-01-31T12:00:00Z`: what failed before it is tried again then.",
  ],
  [
    IGNORE_WINDOW_ANNOTATION,
    "annotation of a PipeScaling",
    "people",
    "A time, such as `2026-01-31T12:00:00Z`: until then rollouts start outside of the rollout window, too.",
  ],
  [
    REQUEST_ANNOTATION,
    "annotation of a PipeScaling",
    "API",
    "The request that the size came with, and the size. JSON.",
  ],
  [RESOURCE_LABEL, "label of a record", "command line, API, people", "Which kind of record it is."],
  [
    ORGANIZATION_LABEL,
    "label of a record",
    "command line, API, people",
    "Id of the organization that it belongs to.",
  ],
  [API_KEY_SECRET_TYPE, "type of a Secret", "command line, people", "An API key."],
] as const;

const EXAMPLE = `apiVersion: GROUP/VERSION
kind: KIND
metadata:
  name: 6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11 # the service
  namespace: acme-pipes # where its pipes run
spec:
  replicaCpuMillicores: 4000
  replicaMemoryGb: 16
`;

export function resourcePage(): string {
  const { spec }: Crd = JSON.parse(JSON.stringify(crdManifest()));
  const { group, names } = spec;
  const [version] = spec.versions;
  const { description = "", properties } = version.schema.openAPIV3Schema;
  const fields = (schema: Schema) =>
    table(
      FIELD_COLUMNS,
      fieldRows(schema, (name) => name),
    );
  const example = EXAMPLE.replace("GROUP", group)
    .replace("VERSION", version.name)
    .replace("KIND", names.kind);
  return sections(
    `# ${names.kind}`,
    description,
    `The controller makes it when the first pipe of a service appears, with an empty spec. Who deletes it resizes nothing: it comes back with the size that its pipes have. Its short name is \`${names.shortNames.join()}\`, its category \`${names.categories.join()}\`. Wait for it by \`kubectl wait --for=condition=Ready psc/<service>\`.`,
    block("yaml", example),
    "## Spec",
    "The size in it has one owner: who keeps it in git must not call the API too.",
    fields(properties.spec),
    [
      "Besides:",
      "",
      ...properties.spec["x-kubernetes-validations"].map(({ message }) => `- ${message}.`),
    ].join("\n"),
    "## Status",
    "Written by the controller, and only when something has changed.",
    fields(properties.status),
    "## Conditions",
    "As [kstatus](https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus) has them, so that `kubectl wait`, Helm, Argo CD and Flux understand them.",
    table(["condition", "what it says"], CONDITIONS),
    "Their reasons, with what to do about each in [errors.md](errors.md#why-a-rescale-is-where-it-is):",
    table(
      ["reason", "condition", "what it means"],
      Object.entries(REASON_TEXTS).flatMap(([reason, { shows, meaning }]) =>
        shows === undefined ? [] : [[code(reason), CONDITION_OF[shows], meaning]],
      ),
    ),
    "Where Kubernetes has a word of its own for why the pods of a pipe cannot be made, that is the reason of Stalled.",
    "## Columns",
    table(
      ["column", "what it shows", ""],
      version.additionalPrinterColumns.map(({ name, jsonPath, priority = 0 }) => [
        name,
        code(jsonPath),
        priority === 0 ? "" : "with `-o wide`",
      ]),
    ),
    "## Labels and annotations",
    table(
      ["name", "of what", "set by", "what it says"],
      NAMES.map(([name, ...rest]) => [code(name), ...rest]),
    ),
    `The fields that each writes are told apart by their managers: \`${API_FIELD_MANAGER}\` and \`${CONTROLLER_FIELD_MANAGER}\`.`,
  );
}

const CONDITION_OF = {
  Ready: "Ready=True",
  Reconciling: "Ready=False, Reconciling=True",
  Stalled: "Ready=False, Stalled=True",
  Suspended: "Ready=Unknown",
} as const;
