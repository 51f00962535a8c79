import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  LAST_ROLLOUT_ANNOTATION,
  RETRY_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../../src/controller/names.ts";
import { crdManifest } from "../../../src/crd/manifest.ts";
import {
  API_FIELD_MANAGER,
  CONTROLLER_FIELD_MANAGER,
  IGNORE_WINDOW_ANNOTATION,
} from "../../../src/crd/names.ts";
import { REASON_TABLE } from "../../../src/crd/reasons.ts";
import { BOOST_REQUEST_ANNOTATION, REQUEST_ANNOTATION } from "../../../src/crd/scaling-request.ts";
import { API_KEY_SECRET_TYPE, ORGANIZATION_LABEL, RESOURCE_LABEL } from "../../../src/records/labels.ts";
import { block, code, sections, table } from "./markdown.ts";
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
    "True: every pod and every pod template of every pipe has the desired size. The condition is about the size: it stays True if a pod fails later. Unknown: suspended.",
  ],
  ["Reconciling", "Pipes are being resized or will be, without intervention. Present only while it is True."],
  [
    "Stalled",
    "Someone has to intervene, or the next automatic retry is minutes away; the message gives the reason. Present only while it is True, and never together with Reconciling.",
  ],
] as const;

const WORKLOAD_LABEL = "label of a Deployment or StatefulSet, and of its pod template";

const NAMES = [
  [SERVICE_LABEL, WORKLOAD_LABEL, "people", "ID of the service that the pipe belongs to."],
  [TYPE_LABEL, WORKLOAD_LABEL, "people", `${code(DATABASE_TYPE)} marks the workload as a pipe.`],
  [
    CONTAINER_ANNOTATION,
    "annotation of a Deployment or StatefulSet, and of its pod template",
    "people",
    "Name of the pipe container, if the pod has several containers.",
  ],
  [
    LAST_ROLLOUT_ANNOTATION,
    "annotation of a Deployment or StatefulSet",
    "controller",
    "The last rollout: its size, start, attempt and request, and the last good size. JSON. Valid only on the object that it was written to, and until another writer changes it.",
  ],
  [
    RETRY_ANNOTATION,
    "annotation of a PipeScaling",
    "people",
    "A time, such as `2026-01-31T12:00:00Z`: pipes that failed before this time are retried then.",
  ],
  [
    IGNORE_WINDOW_ANNOTATION,
    "annotation of a PipeScaling",
    "people",
    "A time, such as `2026-01-31T12:00:00Z`: until then, rollouts also start outside the rollout window.",
  ],
  [
    REQUEST_ANNOTATION,
    "annotation of a PipeScaling",
    "API",
    "The API request that set the size, and the size. JSON.",
  ],
  [
    BOOST_REQUEST_ANNOTATION,
    "annotation of a PipeScaling",
    "API",
    "The API request that set the boost, and the boost. JSON.",
  ],
  [RESOURCE_LABEL, "label of a record", "command line, API, people", "Kind of the record."],
  [
    ORGANIZATION_LABEL,
    "label of a record",
    "command line, API, people",
    "ID of the organization that the record belongs to.",
  ],
  [API_KEY_SECRET_TYPE, "type of a Secret", "command line, people", "An API key."],
] as const;

const EXAMPLE = `apiVersion: GROUP/VERSION
kind: KIND
metadata:
  name: 6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11 # ID of the service
  namespace: acme-pipes # namespace of its pipes
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
    `The controller creates it when the first pipe of a service appears: with an empty spec if no pipe has CPU or memory, otherwise with [a size that holds what the pipes have](../explanation/rollout-policy.md#the-size). Deleting it resizes no pipe: the controller creates it again with the newest size that it gave to the pipes, suspended if a pipe has another one, and without a strategy or a boost. Its short name is \`${names.shortNames.join()}\`, and its category is \`${names.categories.join()}\`. To wait for a rescale, use \`kubectl wait --for=condition=Ready psc/<service>\`.`,
    block("yaml", example),
    "## Spec",
    "The size needs a single owner: if you keep it in git, do not change it through the API. A [boost](../how-to/boost.md) has an owner of its own.",
    fields(properties.spec),
    [
      "Validation rules:",
      "",
      ...properties.spec["x-kubernetes-validations"].map(({ message }) => `- ${message}.`),
    ].join("\n"),
    "## Status",
    "The controller writes the status, and only when something changes.",
    fields(properties.status),
    "## Conditions",
    "The conditions follow [kstatus](https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus), so that `kubectl wait`, Helm, Argo CD and Flux understand them.",
    table(["condition", "meaning"], CONDITIONS),
    "The conditions have these reasons. [errors.md](errors.md#reasons-of-a-rescale) has the remedies.",
    table(
      ["reason", "condition", "meaning"],
      Object.entries(REASON_TABLE).map(([reason, { shows, meaning }]) => [
        code(reason),
        CONDITION_OF[shows],
        meaning,
      ]),
    ),
    "## Columns",
    table(
      ["column", "JSON path", ""],
      version.additionalPrinterColumns.map(({ name, jsonPath, priority = 0 }) => [
        name,
        code(jsonPath),
        priority === 0 ? "" : "with `-o wide`",
      ]),
    ),
    "## Labels and annotations",
    table(
      ["name", "kind", "set by", "meaning"],
      NAMES.map(([name, ...rest]) => [code(name), ...rest]),
    ),
    `The field managers are \`${API_FIELD_MANAGER}\` and \`${CONTROLLER_FIELD_MANAGER}\`.`,
  );
}

const CONDITION_OF = {
  Ready: "Ready=True",
  Reconciling: "Ready=False, Reconciling=True",
  Stalled: "Ready=False, Stalled=True",
  Suspended: "Ready=Unknown",
} as const;
