import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";

/** Where a form of a kubeconfig is written, and the server that it names. */
export interface Place {
  readonly folder: string;
  /** An https:// URL. */
  readonly server: string;
  /** The certificate of the server, in PEM. */
  readonly authority: string;
  /** The URL of a server without TLS. */
  readonly plainServer: string;
  readonly proxy: string;
}

/** One way to write a kubeconfig. */
export interface Form {
  readonly title: string;
  /** Writes the files. @returns the variables that name them; without any, the file `config` is given with --kubeconfig */
  write(place: Place): Readonly<Record<string, string>> | undefined;
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** A JWT that expires in the year 2100. */
const ID_TOKEN = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from('{"exp":4102444800}').toString("base64url")}.c2lnbmF0dXJl`;

const JANE = certificatePair("jane");

interface Entries {
  readonly cluster?: object | undefined;
  readonly user?: object | undefined;
}

function write({ folder }: Place, name: string, content: string | object): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

/** Writes an executable file whose lines are run by a shell. */
function writeProgram(place: Place, name: string, ...lines: readonly string[]): void {
  chmodSync(write(place, name, ["#!/bin/sh", ...lines, ""].join("\n")), 0o755);
}

function kubeconfig({ server }: Place, { cluster = {}, user = {} }: Entries): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true, ...cluster } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
}

function form(title: string, entries: (place: Place) => Entries): Form {
  return {
    title,
    write: (place) => {
      write(place, "config", kubeconfig(place, entries(place)));
      return undefined;
    },
  };
}

/** Options of the user for an exec plugin, whose code a shell runs. */
function plugin(code: string, more: object = {}): object {
  const apiVersion = "client.authentication.k8s.io/v1";
  return { exec: { apiVersion, command: "sh", args: ["-c", code], interactiveMode: "IfAvailable", ...more } };
}

/** Shell code that prints credentials. */
function printed(status: object, version = "v1"): string {
  const credential = {
    kind: "ExecCredential",
    apiVersion: `client.authentication.k8s.io/${version}`,
    status,
  };
  return `echo '${JSON.stringify(credential)}'`;
}

/** Shell code that prints what the plugin was told, as a token. */
const PRINT_INFO = `info=$(printf %s "$KUBERNETES_EXEC_INFO"); token=$(printf %s "$info" | base64 | tr -d '\\n'); printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}' "$token"`;

const verified = { "insecure-skip-tls-verify": false };

const credentials: readonly Form[] = [
  form("a token", () => ({ user: { token: "t" } })),
  form("a token file that ends with a line break", (place) => ({
    user: { tokenFile: write(place, "token", "from-a-file\n") },
  })),
  form("a token file relative to the kubeconfig", (place) => {
    write(place, "secrets/token", "relative");
    return { user: { tokenFile: "secrets/token" } };
  }),
  form("a token and a token file", (place) => ({
    user: { token: "inline", tokenFile: write(place, "token", "file") },
  })),
  form("a token and a token file that does not exist", () => ({
    user: { token: "inline", tokenFile: "/nowhere/token" },
  })),
  form("a token file and a password without a user name", (place) => ({
    user: { tokenFile: write(place, "token", "file"), password: "p" },
  })),
  form("a user name and a password", () => ({ user: { username: "jane", password: "pass:word" } })),
  form("a client certificate in the kubeconfig", () => ({
    user: { "client-certificate-data": base64(JANE.cert), "client-key-data": base64(JANE.key) },
  })),
  form("a client certificate in files relative to the kubeconfig", (place) => {
    write(place, "jane.crt", JANE.cert);
    write(place, "jane.key", JANE.key);
    return { user: { "client-certificate": "jane.crt", "client-key": "./jane.key" } };
  }),
  form("a client certificate and a token", () => ({
    user: { token: "t", "client-certificate-data": base64(JANE.cert), "client-key-data": base64(JANE.key) },
  })),
  form("a key without a client certificate, and a token", () => ({
    user: { token: "t", "client-key-data": base64(JANE.key) },
  })),
  form("an ID token of OpenID Connect", () => ({
    user: {
      "auth-provider": {
        name: "oidc",
        config: { "client-id": "x", "id-token": ID_TOKEN, "idp-issuer-url": "https://id.example" },
      },
    },
  })),
];

const plugins: readonly Form[] = [
  form("an exec plugin that prints a token", () => ({ user: plugin(printed({ token: "t" })) })),
  form("an exec plugin of the older version, with arguments and variables", () => ({
    user: plugin(printed({ token: "'$NAME-$0'" }, "v1beta1"), {
      apiVersion: "client.authentication.k8s.io/v1beta1",
      args: ["-c", printed({ token: "'$NAME-$0'" }, "v1beta1"), "argument"],
      env: [{ name: "NAME", value: "value" }],
    }),
  })),
  form("an exec plugin relative to the kubeconfig", (place) => {
    writeProgram(place, "bin/login", printed({ token: "relative" }));
    return { user: plugin("", { command: "bin/login", args: null }) };
  }),
  form("an exec plugin that prints a client certificate", () => {
    const status = { clientCertificateData: JANE.cert, clientKeyData: JANE.key };
    return { user: plugin(printed(status).replaceAll("\\n", "\\\\n").replace("echo", "printf '%b'")) };
  }),
  form("an exec plugin, and a token", () => ({
    user: { token: "inline", ...plugin(printed({ token: "plugin" })) },
  })),
  form("an exec plugin, and a user name and a password", () => ({
    user: { username: "jane", password: "p", ...plugin(printed({ token: "plugin" })) },
  })),
  form("an exec plugin, and a client certificate", () => ({
    user: {
      "client-certificate-data": base64(JANE.cert),
      "client-key-data": base64(JANE.key),
      ...plugin(printed({ token: "plugin" })),
    },
  })),
  form("an exec plugin that runs without a terminal", () => ({ user: plugin(PRINT_INFO) })),
  form("an exec plugin that never asks", () => ({
    user: plugin(PRINT_INFO, { interactiveMode: "Never" }),
  })),
  form("an exec plugin that receives the cluster", (place) => ({
    cluster: {
      ...verified,
      "certificate-authority": write(place, "ca.crt", place.authority),
      "tls-server-name": "localhost",
      extensions: [
        { name: "client.authentication.k8s.io/exec", extension: { audience: "a" } },
        { name: "other" },
      ],
    },
    user: plugin(PRINT_INFO, { provideClusterInfo: true }),
  })),
  form("an exec plugin that receives a cluster without verification", () => ({
    cluster: { "disable-compression": true },
    user: plugin(PRINT_INFO, { provideClusterInfo: true }),
  })),
];

const impersonation: readonly Form[] = [
  form("an impersonated user", () => ({ user: { token: "t", as: "jane" } })),
  form("an impersonated user with groups, UID and extra fields", () => ({
    user: {
      token: "t",
      as: "jane",
      "as-uid": "4711",
      "as-groups": ["developers", "system:authenticated"],
      "as-user-extra": { scopes: ["view", "edit"], "example.org/a%b ü": ["x"] },
    },
  })),
  form("an impersonated user of an exec plugin", () => ({
    user: { ...plugin(printed({ token: "t" })), as: "jane", "as-groups": ["g"] },
  })),
];

const servers: readonly Form[] = [
  form("a certificate authority in the kubeconfig", ({ authority }) => ({
    cluster: { ...verified, "certificate-authority-data": base64(authority) },
    user: { token: "t" },
  })),
  form("a certificate authority in a file relative to the kubeconfig", (place) => {
    write(place, "ca.crt", place.authority);
    return { cluster: { ...verified, "certificate-authority": "ca.crt" }, user: { token: "t" } };
  }),
  form("another server name for TLS", ({ authority }) => ({
    cluster: {
      ...verified,
      "certificate-authority-data": base64(authority),
      "tls-server-name": "api.example",
    },
    user: { token: "t" },
  })),
  form("a server with a path", ({ server }) => ({
    cluster: { server: `${server}/clusters/one/` },
    user: { token: "t" },
  })),
  form("kubectl proxy, a server without TLS", ({ plainServer }) => ({
    cluster: { server: plainServer, "insecure-skip-tls-verify": false },
    user: { token: "secret", as: "jane" },
  })),
  form("a server without TLS and without a scheme", ({ plainServer }) => ({
    cluster: { server: plainServer.replace("http://", ""), "insecure-skip-tls-verify": null },
    user: { ...plugin("exit 1") },
  })),
  // Without a scheme, there is no TLS, whatever else says that there should be.
  form("a server without a scheme, and a certificate authority", ({ plainServer, authority }) => ({
    cluster: {
      ...verified,
      server: plainServer.replace("http://", ""),
      "certificate-authority-data": base64(authority),
    },
    user: { token: "secret" },
  })),
  form("a server without a scheme, and a certificate authority in a file", (place) => ({
    cluster: {
      ...verified,
      server: place.plainServer.replace("http://", ""),
      "certificate-authority": write(place, "ca.crt", place.authority),
    },
    user: { token: "secret" },
  })),
  form("a server without a scheme that is not to be verified", ({ plainServer }) => ({
    cluster: { server: `${plainServer.replace("http://", "")}/` },
    user: { token: "secret" },
  })),
  form("a server without a scheme, and a client certificate", ({ plainServer }) => ({
    cluster: { ...verified, server: plainServer.replace("http://", "") },
    user: { "client-certificate-data": base64(JANE.cert), "client-key-data": base64(JANE.key) },
  })),
  form("a server that is only a port", ({ plainServer }) => ({
    cluster: { server: plainServer.replace("http://127.0.0.1", "") },
  })),
  form("a server with a scheme and a port", ({ server }) => ({
    cluster: { server: server.replace("127.0.0.1", "") },
    user: { token: "t" },
  })),
  form("a server without TLS, with a certificate authority that is not verified", (place) => ({
    cluster: { server: place.plainServer, "certificate-authority-data": base64(place.authority) },
    user: { tokenFile: write(place, "token", "t"), username: "jane", password: "p" },
  })),
  form("a proxy", ({ proxy }) => ({ cluster: { "proxy-url": proxy }, user: { token: "t" } })),
];

/** A kubeconfig that is not written as JSON. */
function text(title: string, content: (place: Place) => string | Buffer): Form {
  return {
    title,
    write: (place) => {
      writeFileSync(join(place.folder, "config"), content(place));
      return undefined;
    },
  };
}

interface YamlEntries {
  readonly cluster?: string;
  readonly user?: string;
  readonly before?: string;
}

/** The entries are written as flow maps. */
function yaml({ server }: Place, { cluster, user = "{token: t}", before = "" }: YamlEntries = {}): string {
  return `${before}
apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: ${cluster ?? `{server: "${server}", insecure-skip-tls-verify: true}`}
users:
- name: u
  user: ${user}
contexts:
- name: x
  context: {cluster: c, user: u}
current-context: x
`;
}

const utf16 = (place: Place) => Buffer.from(`\ufeff${yaml(place).replaceAll("\n", "\r\n")}`, "utf16le");

const syntax: readonly Form[] = [
  text("YAML", (place) => yaml(place)),
  text("an anchor and an alias", (place) => yaml(place, { user: "*u", before: "x: &u {token: a}" })),
  text("a merge key", (place) =>
    yaml(place, { user: "{<<: *u, token: own, as: jane}", before: "x: &u {token: a, as-groups: [g]}" }),
  ),
  text("merge keys with several maps", (place) =>
    yaml(place, {
      user: "{<<: [*a, *b], <<: {as-uid: '1'}}",
      before: "x: &a {token: a}\ny: &b {token: b, as: jane}",
    }),
  ),
  text("a certificate authority from a merge key", (place) =>
    yaml(place, {
      cluster: `{<<: *c, server: "${place.server}"}`,
      before: `x: &c {certificate-authority-data: ${base64(place.authority)}}`,
    }),
  ),
  text("an alias in 150 entries", (place) => {
    const others = Array.from({ length: 150 }, (_, index) => `\n- name: u${index}\n  user: *u`);
    return yaml(place, { user: `&u {token: a}${others.join("")}` });
  }),
  ...["y", "yes", "On", "TRUE"].map((word) =>
    text(`insecure-skip-tls-verify: ${word}`, (place) =>
      yaml(place, { cluster: `{server: "${place.server}", insecure-skip-tls-verify: ${word}}` }),
    ),
  ),
  ...["N", "no", "off", "False"].map((word) =>
    text(`insecure-skip-tls-verify: ${word}`, (place) => {
      const authority = base64(place.authority);
      return yaml(place, {
        cluster: `{server: "${place.server}", insecure-skip-tls-verify: ${word}, certificate-authority-data: ${authority}}`,
      });
    }),
  ),
  text("equal keys, of which the last one counts", (place) =>
    yaml(place, { user: "{token: a, token: b}", before: "current-context: other\nusers: []" }),
  ),
  text("several documents, of which the first one counts", (place) => {
    const other = yaml(place, { user: "{token: other}" });
    return `---\n${yaml(place)}---\n${other}---\n\tnot: [yaml\n`;
  }),
  text("an end of the document, and more text", (place) => `${yaml(place)}...\n---\n`),
  text("a byte order mark", (place) => `\ufeff${yaml(place)}`),
  text("UTF-16", utf16),
  text("UTF-16 in the other byte order", (place) => utf16(place).swap16()),
  text("JSON with tabs", (place) => JSON.stringify(kubeconfig(place, { user: { token: "t" } }), null, "\t")),
];

const files: readonly Form[] = [
  {
    title: "entries that are incomplete or outdated, and not in use",
    write: (place) => {
      const old = {
        apiVersion: "client.authentication.k8s.io/v1alpha1",
        command: "x",
        interactiveMode: "Maybe",
      };
      const others = [{ name: "a", user: { exec: old } }, { name: "b", user: { exec: {} } }, { name: "d" }];
      write(place, "config", {
        ...kubeconfig(place, {}),
        preferences: { colors: true },
        users: [...others, { name: "u", user: { token: "t", unknown: 1, "auth-provider": null } }],
        contexts: [
          { name: "y", context: null },
          { name: "x", context: { cluster: "c", user: "u", namespace: "n" } },
        ],
      });
      return undefined;
    },
  },
  {
    title: "~/.kube/config",
    write: (place) => {
      write(place, ".kube/config", kubeconfig(place, { user: { token: "home" } }));
      return {};
    },
  },
  {
    title: "a list of files, of which some do not exist or are empty",
    write: (place) => {
      const path = write(place, "config", kubeconfig(place, { user: { token: "t" } }));
      return { KUBECONFIG: `/nowhere/config:${write(place, "empty", "")}:${path}:${place.folder}/nothing` };
    },
  },
  {
    title: "a list of files that complete each other, and of which the first wins",
    write: (place) => {
      const context = { name: "y", context: { cluster: "c", user: "v" } };
      const other = { name: "c", cluster: { server: "https://other.invalid" } };
      const first = { contexts: [context], "current-context": "y", users: null };
      const last = { clusters: [other], users: [{ name: "v", user: { token: "other" } }] };
      const paths = [
        write(place, "first/config", first),
        write(place, "second/config", {
          ...kubeconfig(place, {}),
          users: [{ name: "v", user: { tokenFile: "token" } }],
        }),
        write(place, "last/config", last),
      ];
      write(place, "second/token", "second");
      return { KUBECONFIG: paths.join(":") };
    },
  },
];

export const FORMS: readonly Form[] = [
  ...credentials,
  ...plugins,
  ...impersonation,
  ...servers,
  ...syntax,
  ...files,
];

/** A kubeconfig that kubectl refuses before it sends a request. */
export interface RefusedForm extends Form {
  /** Part of our error. */
  readonly problem: RegExp;
}

function refused(title: string, problem: RegExp, entries: (place: Place) => Entries): RefusedForm {
  return { ...form(title, entries), problem };
}

const WITHOUT_USER = /has as-uid, as-groups or as-user-extra without as: set as/;
const TWO_USERS = /has a token together with a username or a password: remove one/;
const WITHOUT_KEY = /has a client certificate without a key: set client-key/;
const UNVERIFIED = /has a certificate authority together with insecure-skip-tls-verify: remove one/;

export const REFUSED_FORMS: readonly RefusedForm[] = [
  refused("impersonated groups without a user", WITHOUT_USER, () => ({
    user: { token: "t", "as-groups": ["developers"] },
  })),
  refused("an impersonated UID without a user", WITHOUT_USER, () => ({
    user: { token: "t", "as-uid": "4711" },
  })),
  refused("impersonated extra fields without a user", WITHOUT_USER, () => ({
    user: { token: "t", "as-user-extra": { scopes: [] } },
  })),
  refused(
    "impersonated groups without a user, and a server without TLS",
    WITHOUT_USER,
    ({ plainServer }) => ({
      cluster: { server: plainServer, "insecure-skip-tls-verify": false },
      user: { "as-groups": ["developers"] },
    }),
  ),
  refused("a token, and a user name and a password", TWO_USERS, () => ({
    user: { token: "t", username: "jane", password: "p" },
  })),
  refused("a token and a password", TWO_USERS, () => ({ user: { token: "t", password: "p" } })),
  refused("a token file, and a user name and a password", TWO_USERS, (place) => ({
    user: { tokenFile: write(place, "token", "t"), username: "jane", password: "p" },
  })),
  refused("a client certificate without a key", WITHOUT_KEY, () => ({
    user: { "client-certificate-data": base64(JANE.cert) },
  })),
  refused("a client certificate in a file without a key, and a token", WITHOUT_KEY, (place) => ({
    user: { token: "t", "client-certificate": write(place, "jane.crt", JANE.cert) },
  })),
  refused("an exec plugin and OpenID Connect", /has an exec plugin together with an auth-provider/, () => ({
    user: {
      ...plugin(printed({ token: "plugin" })),
      "auth-provider": { name: "oidc", config: { "client-id": "x", "id-token": ID_TOKEN } },
    },
  })),
  refused("a certificate authority that would not be used", UNVERIFIED, ({ authority }) => ({
    cluster: { "certificate-authority-data": base64(authority) },
    user: { token: "t" },
  })),
  refused("a certificate authority in a file that would not be used", UNVERIFIED, (place) => ({
    cluster: { "certificate-authority": write(place, "ca.crt", place.authority) },
    user: { token: "t" },
  })),
];
