import { isDeepStrictEqual } from "node:util";
import { crdManifest } from "../../crd/manifest.ts";
import { GROUP, PLURAL, VERSION } from "../../crd/names.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Finding } from "./finding.ts";

export const DEFINITION_NAME = `${PLURAL}.${GROUP}`;
export const DEFINITION_PATH = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${DEFINITION_NAME}`;

const INSTALL =
  "kubectl apply --server-side -f crds/pipes.clouddb.dev_pipescalings.yaml, of the release that is installed (helm upgrade does it too).";

export interface Definition extends KubeObject {
  readonly spec: {
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly schema?: object;
    }[];
  };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
    }[];
  };
}

/** The definition of PipeScaling as it is in the cluster, held against the one that this program was made with. */
export function examineDefinition(definition: Definition | undefined): Finding[] {
  const check = "definition";
  if (!definition) {
    return [
      {
        severity: "error",
        check,
        message: `There is no CustomResourceDefinition ${DEFINITION_NAME}: nothing can be resized.`,
        remedy: INSTALL,
      },
    ];
  }
  if (definition.metadata.deletionTimestamp !== undefined) {
    return [
      {
        severity: "error",
        check,
        message: `The CustomResourceDefinition ${DEFINITION_NAME} is being deleted, and every PipeScaling with it: all sizes stay as they are.`,
        remedy: `Once it is gone, install it anew; the controller makes the PipeScalings again, with the sizes that the pipes have: ${INSTALL}`,
      },
    ];
  }
  const established = definition.status?.conditions?.find(({ type }) => type === "Established");
  if (established?.status !== "True") {
    return [
      {
        severity: "error",
        check,
        message: `The CustomResourceDefinition ${DEFINITION_NAME} is not established${established?.message ? `: ${established.message}` : ""}.`,
        remedy: `kubectl describe crd ${DEFINITION_NAME} says why.`,
      },
    ];
  }
  return ofVersion(definition);
}

function ofVersion({ spec }: Definition): Finding[] {
  const check = "definition";
  const installed = spec.versions.find(({ name }) => name === VERSION);
  if (!installed?.served) {
    const served = spec.versions.filter((each) => each.served).map(({ name }) => name);
    return [
      {
        severity: "error",
        check,
        message: `The CustomResourceDefinition ${DEFINITION_NAME} does not serve ${VERSION}, which is the version that is used here; it serves ${served.join(", ") || "none"}.`,
        remedy: `Use a pipe-scaling of the release that is installed, or install the definition of this one: ${INSTALL}`,
      },
    ];
  }
  const own = ownSchema();
  if (isDeepStrictEqual(installed.schema, own)) {
    return [
      {
        severity: "ok",
        check,
        message: `The definition of PipeScaling is that of this release (${VERSION}).`,
      },
    ];
  }
  return [ofSchemas(new Set(pathsIn(installed.schema)), new Set(pathsIn(own)))];
}

/** As the API server would give it back: plain data. */
function ownSchema(): unknown {
  const { spec }: Pick<Definition, "spec"> = JSON.parse(JSON.stringify(crdManifest()));
  return spec.versions[0]?.schema;
}

function ofSchemas(installed: ReadonlySet<string>, own: ReadonlySet<string>): Finding {
  const missing = [...own].filter((path) => !installed.has(path));
  const unknown = [...installed].filter((path) => !own.has(path));
  const common = { severity: "warning", check: "definition" } as const;
  if (missing.length > 0 && unknown.length === 0) {
    return {
      ...common,
      message: `The definition of PipeScaling in the cluster is older than this program: it has no ${missing[0]}.`,
      remedy: `Bring it up to date: ${INSTALL}`,
    };
  }
  if (unknown.length > 0 && missing.length === 0) {
    return {
      ...common,
      message: `The definition of PipeScaling in the cluster is newer than this program, which knows no ${unknown[0]}.`,
      remedy: "Use the pipe-scaling of the release that is installed.",
    };
  }
  return {
    ...common,
    message:
      "The definition of PipeScaling in the cluster is not that of this program: somebody has changed it, or it is of another release.",
    remedy: `Unless that is meant, put it right: ${INSTALL}`,
  };
}

/** The properties of a schema, each by the way to it: `spec.suspend`. */
function pathsIn(schema: unknown, way = ""): string[] {
  if (Array.isArray(schema)) return schema.flatMap((each) => pathsIn(each, way));
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    if (key !== "properties") return pathsIn(value, way);
    return Object.entries(value).flatMap(([name, inner]) => {
      const path = way === "" ? name : `${way}.${name}`;
      return [path, ...pathsIn(inner, path)];
    });
  });
}
