import { COMMANDS, KUBECTL_COMMANDS } from "../../../src/all-commands.ts";
import { type CommandDefinition, KUBECTL_PLUGIN, optionTerm, PROGRAM } from "../../../src/cli/command.ts";
import { KUBECTL_COMPLETION } from "../../../src/cli/completion/kubectl.ts";
import { EXIT_CODES } from "../../../src/cli/exit-codes.ts";
import { argumentTerm, type DeclaredOption, declaredOptions } from "../../../src/settings/option.ts";
import { block, code, linkTo, sections, sentence, table } from "./markdown.ts";

const OTHERS = "Others:";

const VARIABLES = [
  [
    "`HTTPS_PROXY`, `NO_PROXY`",
    "the proxy (`http://` or `https://`) for connections to the API, and to a cluster whose kubeconfig has no `proxy-url`; and the hosts that bypass it: domain names, which include their subdomains, and addresses, each with or without a port, or `*`. Unlike in kubectl, CIDRs in `NO_PROXY` have no effect: list the address of the API server instead. The names may also be lowercase. Plain HTTP, loopback addresses, and the API server of a pod's own cluster never use a proxy",
  ],
  [
    "`KUBECONFIG`",
    "kubeconfig files, if `--kubeconfig` is not set. As for kubectl, files that do not exist are skipped, and the first file that contains an entry wins",
  ],
  ["`NO_COLOR`", "if set, disables colors on a terminal"],
  ["`XDG_CONFIG_HOME`", "folder of the profiles, instead of `~/.config`"],
] as const;

/** The part of the page about the kubectl plugin. */
function kubectlPlugin(): string {
  const groups = new Set(KUBECTL_COMMANDS.commands.map(({ name }) => name.split(" ")[0] ?? ""));
  const commands = [...groups].map((name) => code(`${KUBECTL_PLUGIN} ${name}`)).join(", ");
  const common = declaredOptions(KUBECTL_COMMANDS.commonOptions ?? {}).flatMap(
    (each) => optionTerm(each) ?? [],
  );
  return sections(
    "## The kubectl plugin",
    `[Installed as a plugin](../install.md#use-it-as-a-kubectl-plugin), the program is also \`${KUBECTL_PLUGIN}\`, with the commands that use a kubeconfig: ${commands}. Their arguments, options, variables and exit codes are those below.`,
    `These options may also come before the command: ${common.map(code).join(", ")}. kubectl itself rejects options before the name of a plugin. \`--namespace\` is the namespace of the records, and its default is not that of the context.`,
    block(
      "sh",
      [
        `${KUBECTL_PLUGIN} status orders --watch`,
        `${KUBECTL_PLUGIN} --context production -n acme-records doctor`,
        `${KUBECTL_PLUGIN} admin service list -o json`,
      ].join("\n"),
    ),
    `kubectl completes the commands if \`${KUBECTL_COMPLETION}\` is on the \`PATH\`. The npm package installs it, and \`${KUBECTL_PLUGIN} completion\` prints it.`,
  );
}

export function cliPage(): string {
  const all = COMMANDS.commands;
  const headings = [...new Set(all.map(headingOf))];
  return sections(
    "# The command line",
    `\`${PROGRAM} --help\` and \`${PROGRAM} <command> --help\` show the same text. A flag takes precedence over its variable, and an empty variable counts as unset. A repeatable flag is a list, which is comma-separated in the variable.`,
    "## Exit codes",
    table(
      ["code", "meaning"],
      EXIT_CODES.map(([exitCode, meaning]) => [code(String(exitCode)), meaning]),
    ),
    "## Variables of other programs",
    table(["variable", "effect"], VARIABLES),
    kubectlPlugin(),
    "## Commands",
    ...headings.map((heading) =>
      overview(
        heading,
        all.filter((each) => headingOf(each) === heading),
      ),
    ),
    ...headings.flatMap((heading) => all.filter((each) => headingOf(each) === heading).map(describe)),
  );
}

function headingOf({ section = OTHERS }: CommandDefinition): string {
  return section;
}

function overview(heading: string, commands: readonly CommandDefinition[]): string {
  const rows = commands.map(({ name, summary }) => [linkTo(name, code(name)), summary]);
  return sections(heading, table(["command", "description"], rows));
}

function describe(command: CommandDefinition): string {
  const { name, summary, details = "", arguments: args, options, examples } = command;
  const usage = [PROGRAM, name, "[options]", ...args.map(argumentTerm)].join(" ");
  return sections(
    `### ${name}`,
    sentence(summary),
    details.replace(/(?<!\n)\n(?!\n)/g, " "),
    block("sh", usage),
    args.length === 0 ? "" : table(["argument", "description"], args.map(argumentRow)),
    options.length === 0
      ? ""
      : table(["option", "variable", "default", "description"], options.map(optionRow)),
    "Examples:",
    block("sh", examples.map((example) => `${PROGRAM} ${example}`).join("\n")),
  );
}

function argumentRow(argument: DeclaredOption): string[] {
  const { description, choices } = argument;
  return [code(argumentTerm(argument)), sentence(description) + oneOf(choices, description)];
}

function optionRow(option: DeclaredOption) {
  const { variable, description, required, list, choices } = option;
  const term = optionTerm(option);
  const notes = [...(required ? ["Required."] : []), ...(list ? ["Repeatable."] : [])];
  return [
    term === undefined ? "no flag: a secret" : code(term),
    variable === undefined ? "" : code(variable),
    option.default === undefined ? "" : code(option.default),
    [sentence(description) + oneOf(choices, description), ...notes].join(" "),
  ];
}

/** Lists the choices, unless the description has them already. */
function oneOf(choices: readonly string[] | undefined, description: string): string {
  if (!choices || choices.every((choice) => description.includes(choice))) return "";
  return ` One of ${choices.map(code).join(", ")}.`;
}
