import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve, sep } from "node:path";
import { parseAllDocuments } from "yaml";
import * as z from "zod";
import { KubeConfigError, messageOf } from "./errors.ts";
import type { Environment } from "./proxy.ts";

/*
 * This file reads kubeconfigs, because the client library ignores some of their fields, and does not merge several
 * files as kubectl does.
 */

/** kubectl treats null like a field that is missing. */
function orEmpty<T extends z.ZodType>(empty: unknown, schema: T) {
  return z.preprocess((value) => value ?? empty, schema);
}

const text = z
  .string()
  .nullish()
  .transform((value) => value || undefined);
const texts = orEmpty([], z.array(z.string()));
/** kubectl reads YAML 1.1, where these words are booleans. */
const isSet = orEmpty(
  false,
  z.union([z.boolean(), z.stringbool({ truthy: ["y", "yes", "on"], falsy: ["n", "no", "off"] })], {
    error: "expected true or false",
  }),
);

const execConfig = z.object({
  apiVersion: z.enum(["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]),
  command: z.string().min(1),
  args: texts,
  env: orEmpty([], z.array(z.object({ name: z.string(), value: orEmpty("", z.string()) }))),
  installHint: text,
  interactiveMode: orEmpty("IfAvailable", z.enum(["Never", "IfAvailable", "Always"])),
  provideClusterInfo: isSet,
});

/** A program that prints credentials. */
export type ExecConfig = z.output<typeof execConfig>;

const cluster = z.object({
  server: text,
  "certificate-authority": text,
  "certificate-authority-data": text,
  "insecure-skip-tls-verify": isSet,
  "tls-server-name": text,
  "proxy-url": text,
  "disable-compression": isSet,
  extensions: orEmpty([], z.array(z.object({ name: z.string(), extension: z.unknown().optional() }))),
});

export type KubeconfigCluster = z.output<typeof cluster>;

const user = z.object({
  token: text,
  tokenFile: text,
  username: text,
  password: text,
  "client-certificate": text,
  "client-certificate-data": text,
  "client-key": text,
  "client-key-data": text,
  as: text,
  "as-uid": text,
  "as-groups": texts,
  "as-user-extra": orEmpty({}, z.record(z.string(), texts)),
  "auth-provider": z.object({ name: text, config: z.record(z.string(), z.string()).nullish() }).nullish(),
  // Like kubectl, accepts any configuration of a plugin that is not in use.
  exec: z.unknown().optional(),
});

type UserFields = z.output<typeof user>;

export type KubeconfigUser = Omit<UserFields, "exec"> & { readonly exec: ExecConfig | undefined };

const context = z.object({ cluster: text, user: text });

const kubeconfig = orEmpty(
  {},
  z.object({
    "current-context": text,
    contexts: orEmpty([], z.array(z.object({ name: z.string(), context: orEmpty({}, context) }))),
    clusters: orEmpty([], z.array(z.object({ name: z.string(), cluster: orEmpty({}, cluster) }))),
    users: orEmpty([], z.array(z.object({ name: z.string(), user: orEmpty({}, user) }))),
  }),
);

type Kubeconfig = z.output<typeof kubeconfig>;

/** The cluster and the user of the selected context. */
export interface CurrentEntries {
  /** The files, as the subject of a sentence. */
  readonly origin: string;
  readonly cluster: KubeconfigCluster & { readonly server: string };
  readonly user: KubeconfigUser;
}

/**
 * Reads the given kubeconfig, or else the files that kubectl would read: those in `KUBECONFIG`, or `~/.kube/config`.
 * Files that do not exist are skipped. If several files contain an entry, the first one wins.
 *
 * @param contextName the context to use instead of the current one
 * @returns `undefined` if no file exists
 * @throws KubeConfigError
 */
export function readKubeconfig(
  given: string | undefined,
  env: Environment,
  contextName?: string,
): CurrentEntries | undefined {
  const files = readFiles(given, env);
  if (files.length === 0) return undefined;
  const origin = `The kubeconfig ${files.map(({ path }) => path).join(delimiter)}`;
  const currentName = contextName ?? files.map((file) => file["current-context"]).find(Boolean);
  const current = find(files, ({ contexts }) => contexts, currentName)?.context;
  if (contextName !== undefined && !current) {
    const names = contextNames(files);
    throw new KubeConfigError(
      `${origin} has no context "${contextName}": name one of its contexts: ${names.join(", ")}.`,
    );
  }
  const ofCluster = find(files, ({ clusters }) => clusters, current?.cluster);
  const server = ofCluster?.cluster.server;
  if (!ofCluster || server === undefined) {
    const remedy =
      contextName === undefined
        ? "set current-context to a context that does"
        : `the context "${contextName}" has none, so name another one`;
    throw new KubeConfigError(`${origin} names no cluster: ${remedy}.`);
  }
  const ofUser = find(files, ({ users }) => users, current?.user);
  if (current?.user && !ofUser) {
    throw new KubeConfigError(
      `${origin} has no user "${current.user}", which the context "${currentName}" names: add it, or name another one.`,
    );
  }
  const absolute = absolutePaths(ofCluster.path);
  const authority = absolute(ofCluster.cluster["certificate-authority"]);
  return {
    origin,
    cluster: { ...ofCluster.cluster, server, "certificate-authority": authority },
    user: ofUser ? userIn(ofUser.path, ofUser.user) : { ...user.parse({}), exec: undefined },
  };
}

/** Returns the context names in the files of `readKubeconfig`, for completion; none if a file cannot be read. */
export function readContextNames(given: string | undefined, env: Environment): string[] {
  try {
    return contextNames(readFiles(given, env));
  } catch (error) {
    if (error instanceof KubeConfigError) return [];
    throw error;
  }
}

function contextNames(files: readonly Kubeconfig[]): string[] {
  return [...new Set(files.flatMap(({ contexts }) => contexts.map(({ name }) => name)))];
}

function readFiles(given: string | undefined, env: Environment): (Kubeconfig & { readonly path: string })[] {
  const paths = given === undefined ? usualPaths(env) : [given];
  return paths.flatMap((path) => {
    const content = read(path);
    return content === undefined ? [] : [{ ...parsed(path, content), path }];
  });
}

function usualPaths(env: Environment): string[] {
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter(Boolean);
  return listed.length > 0 ? listed : [join(homedir(), ".kube", "config")];
}

/** Encodings by the byte order mark. A redirection in Windows PowerShell writes UTF-16. */
const ENCODINGS: ReadonlyMap<string, string> = new Map([
  ["fffe", "utf-16le"],
  ["feff", "utf-16be"],
]);

function read(path: string): string | undefined {
  try {
    const bytes = readFileSync(path);
    return new TextDecoder(ENCODINGS.get(bytes.toString("hex", 0, 2))).decode(bytes);
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
    throw unreadable(path, cause);
  }
}

function parsed(path: string, content: string): Kubeconfig {
  let value: unknown;
  try {
    value = yaml(content);
  } catch (cause) {
    throw unreadable(path, cause);
  }
  const { success, data, error } = kubeconfig.safeParse(value);
  if (success) return data;
  throw unreadable(path, issueOf(error));
}

/** Like kubectl, reads only the first document, merges maps at `<<`, and takes the last one of equal keys. */
function yaml(content: string): unknown {
  const [document] = parseAllDocuments(content, { merge: true, uniqueKeys: false });
  // The parser's message would quote the line, which can contain a token.
  for (const { linePos } of document?.errors ?? [])
    throw new Error(`line ${linePos?.[0].line} is not valid YAML`);
  // The user who wrote the file needs no protection from it: it can name programs to run.
  return document?.toJS({ maxAliasCount: -1 });
}

function issueOf(error: z.ZodError, ...parent: readonly string[]): Error {
  const [issue] = error.issues;
  const where = [...parent, ...(issue?.path ?? [])].join(".");
  return new Error(`${where}: ${issue?.message}`, { cause: error });
}

function unreadable(path: string, cause: unknown): KubeConfigError {
  return new KubeConfigError(`The kubeconfig ${path} cannot be read: ${messageOf(cause)}`, { cause });
}

/** Returns the entry of the first file that contains it, with the path of this file. */
function find<T extends { readonly name: string }>(
  files: readonly (Kubeconfig & { readonly path: string })[],
  entriesOf: (file: Kubeconfig) => readonly T[],
  name: string | undefined,
): (T & { readonly path: string }) | undefined {
  return files
    .flatMap((file) => entriesOf(file).map((entry) => ({ ...entry, path: file.path })))
    .find((entry) => entry.name === name);
}

/** Paths in a kubeconfig are relative to its folder. */
function absolutePaths(kubeconfigPath: string) {
  const folder = dirname(kubeconfigPath);
  return (path: string | undefined) => path && resolve(folder, path);
}

function userIn(kubeconfigPath: string, fields: UserFields): KubeconfigUser {
  const absolute = absolutePaths(kubeconfigPath);
  return {
    ...fields,
    tokenFile: absolute(fields.tokenFile),
    "client-certificate": absolute(fields["client-certificate"]),
    "client-key": absolute(fields["client-key"]),
    exec: fields.exec ? execIn(kubeconfigPath, fields.exec) : undefined,
  };
}

/** A command without a path separator is looked up in PATH. */
function execIn(kubeconfigPath: string, fields: unknown): ExecConfig {
  const { success, data, error } = execConfig.safeParse(fields);
  if (!success) throw unreadable(kubeconfigPath, issueOf(error, "exec"));
  const { command } = data;
  return { ...data, command: command.includes(sep) ? resolve(dirname(kubeconfigPath), command) : command };
}
