import type { KubeRequest } from "../../../src/kube/client.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";

type Selects = (object: KubeObject) => boolean;

/** The namespace, plural, name and subresource in a path of the API server. */
const RESOURCE_PATH =
  /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<plural>[^/]+)(?:\/(?<name>[^/]+)(?:\/(?<subresource>[^/]+))?)?$/;

export interface Target {
  /** Absent for all namespaces. */
  readonly namespace: string | undefined;
  readonly plural: string;
  /** Absent for a collection. */
  readonly name: string | undefined;
  /** The plural, with the subresource if there is one. */
  readonly resource: string;
}

export function targetOf({ path }: KubeRequest): Target {
  const { namespace, plural = "", name, subresource } = RESOURCE_PATH.exec(path)?.groups ?? {};
  return {
    namespace: namespace === undefined ? undefined : decodeURIComponent(namespace),
    plural,
    name: name === undefined ? undefined : decodeURIComponent(name),
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
  };
}

/** Selects the objects of a list or watch by its namespace and its selectors. */
export function selectionOf(request: KubeRequest): Selects {
  const { namespace } = targetOf(request);
  const { labelSelector, fieldSelector } = request.query ?? {};
  const conditions: Selects[] = [
    ...requirements(labelSelector).map(labelRequirement),
    ...requirements(fieldSelector).map(fieldRequirement),
  ];
  if (namespace !== undefined) conditions.push(({ metadata }) => metadata.namespace === namespace);
  return (object) => conditions.every((isMet) => isMet(object));
}

/** The commas in `a in (b,c)` separate values. */
function requirements(selector: unknown): string[] {
  return typeof selector === "string" ? selector.split(/,(?![^(]*\))/).filter((each) => each !== "") : [];
}

function labelRequirement(text: string): Selects {
  const set = /^(?<key>\S+) (?<operator>in|notin) \((?<values>.*)\)$/.exec(text)?.groups;
  if (set) {
    const values = (set["values"] ?? "").split(",").map((value) => value.trim());
    const isIn = (object: KubeObject) => values.includes(labelOf(object, set["key"]) ?? "");
    return set["operator"] === "in" ? isIn : (object) => !isIn(object);
  }
  if (text.startsWith("!")) return (object) => labelOf(object, text.slice(1)) === undefined;
  const [key = "", value] = text.split(/==?|!=/);
  if (value === undefined) return (object) => labelOf(object, key) !== undefined;
  const isEqual = (object: KubeObject) => labelOf(object, key) === value;
  return text.includes("!=") ? (object) => !isEqual(object) : isEqual;
}

function labelOf({ metadata }: KubeObject, key: string | undefined): string | undefined {
  return metadata.labels?.[key ?? ""];
}

function fieldRequirement(text: string): Selects {
  const [path = "", value] = text.split(/==?|!=/);
  const isEqual = (object: KubeObject) => fieldOf(object, path.split(".")) === value;
  return text.includes("!=") ? (object) => !isEqual(object) : isEqual;
}

/** An absent field is equal to the empty text. */
function fieldOf(object: unknown, path: readonly string[]): string {
  const value = path.reduce((at: unknown, key): unknown => Object(at)[key], object);
  return value === undefined ? "" : String(value);
}
