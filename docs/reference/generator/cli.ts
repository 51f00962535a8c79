import { COMMANDS } from "../../../src/all-commands.ts";
import type { DeclaredArgument } from "../../../src/cli/argument.ts";
import { allCommands, type CommandDefinition, type CommandNode, PROGRAM } from "../../../src/cli/command.ts";
import { EXIT_CODES } from "../../../src/cli/exit-codes.ts";
import type { DeclaredOption } from "../../../src/settings/option.ts";
import { block, code, linkTo, sections, sentence, table } from "./markdown.ts";

const OTHERS = "Others:";

const VARIABLES = [
  [
    "`HTTPS_PROXY`, `NO_PROXY`",
    "the proxy (`http://` or `https://`) for connections to the API, and to a cluster whose kubeconfig has no `proxy-url`; and the hosts to connect to without it: domain names, which include their subdomains, and addresses, each with or without a port, or `*`. Unlike kubectl, CIDRs in `NO_PROXY` have no effect: list the address of the API server itself. The names may also be in lower case. Plain HTTP, loopback addresses, and the cluster of a pod's own service account never use a proxy",
  ],
  ["`KUBECONFIG`", "kubeconfigs, as for kubectl, where `--kubeconfig` is not given"],
  ["`NO_COLOR`", "if it is set, there are no colours on a terminal either"],
  ["`XDG_CONFIG_HOME`", "where profiles are, in place of `~/.config`"],
] as const;

interface Named {
  readonly words: string;
  readonly command: CommandDefinition;
}

export function cliPage(): string {
  const all = COMMANDS.commands;
  const headings = [...new Set(all.map(headingOf))];
  return sections(
    "# The command line",
    `\`${PROGRAM} --help\` and \`${PROGRAM} <command> --help\` tell the same. Where a variable is named beside a flag it stands for it: the flag wins, and an empty variable counts as not set. What may be repeated is a list, with commas between in the variable.`,
    "## Exit codes",
    table(
      ["code", "meaning"],
      EXIT_CODES.map(([exitCode, meaning]) => [code(String(exitCode)), meaning]),
    ),
    "## Variables of other programs",
    table(["variable", "what it does"], VARIABLES),
    "## Commands",
    ...headings.map((heading) =>
      overview(heading, allCommands(all.filter((each) => headingOf(each) === heading))),
    ),
    ...headings.flatMap((heading) =>
      allCommands(all.filter((each) => headingOf(each) === heading)).map(describe),
    ),
  );
}

function headingOf({ section = OTHERS }: CommandNode): string {
  return section;
}

function overview(heading: string, commands: readonly Named[]): string {
  const rows = commands.map(({ words, command }) => [linkTo(words, code(words)), command.summary]);
  return sections(heading, table(["command", "what it does"], rows));
}

function describe({ words, command }: Named): string {
  const { summary, details = "", arguments: args, options, examples } = command;
  const usage = [PROGRAM, words, "[options]", ...args.map(({ term }) => term)].join(" ");
  return sections(
    `### ${words}`,
    sentence(summary),
    details.replace(/(?<!\n)\n(?!\n)/g, " "),
    block("sh", usage),
    args.length === 0 ? "" : table(["argument", "what it is"], args.map(argumentRow)),
    options.length === 0
      ? ""
      : table(["option", "variable", "default", "what it is"], options.map(optionRow)),
    "Examples:",
    block("sh", examples.map((example) => `${PROGRAM} ${example}`).join("\n")),
  );
}

function argumentRow({ term, description, choices }: DeclaredArgument): string[] {
  return [code(term), sentence(description) + oneOf(choices, description)];
}

function optionRow({
  flag,
  variable,
  placeholder,
  description,
  required,
  list,
  choices,
  ...option
}: DeclaredOption) {
  const value = placeholder === undefined ? "" : ` <${placeholder}>`;
  const notes = [...(required ? ["Required."] : []), ...(list ? ["Repeatable."] : [])];
  return [
    flag === undefined ? "no flag: a secret" : code(`${flag}${value}`),
    variable === undefined ? "" : code(variable),
    option.default === undefined ? "" : code(option.default),
    [sentence(description) + oneOf(choices, description), ...notes].join(" "),
  ];
}

/** Those that the description does not tell anyway. */
function oneOf(choices: readonly string[] | undefined, description: string): string {
  if (!choices || choices.every((choice) => description.includes(choice))) return "";
  return ` One of ${choices.map(code).join(", ")}.`;
}
