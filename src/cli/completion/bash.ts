import { PROGRAM } from "../command.ts";
import type { Flag, Place } from "./places.ts";

/** For bash 3.2 and newer (macOS has no other), without the package bash-completion. */
export function bashScript(places: readonly Place[]): string {
  return `# bash completion of ${PROGRAM}

_pipe_scaling() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  # Bash splits --flag=value into three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi

  local place= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case $place/\${COMP_WORDS[i]} in
      ${paths(places).join(" | ")}) place=$place/\${COMP_WORDS[i]} ;;
    esac
  done

  local words= flags= value=
  case $place in
${places.map(placeCase).join("\n")}
  esac

  local IFS=$' \\t\\n'
  case $value in
    file)
      IFS=$'\\n'
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -- "$current"))
      ;;
    any) COMPREPLY=() ;;
    ?*) COMPREPLY=($(compgen -W "$value" -- "$current")) ;;
    *)
      [[ $current == -* || -z $words ]] && words=$flags
      COMPREPLY=($(compgen -W "$words" -- "$current"))
      ;;
  esac
}

complete -F _pipe_scaling ${PROGRAM}
`;
}

function paths(places: readonly Place[]): string[] {
  return places.map(({ path }) => path).filter(Boolean);
}

function placeCase({ path, words, flags }: Place): string {
  return [
    `    ${path === "" ? "''" : path})`,
    `      words='${names(words)}'`,
    `      flags='${names(flags)}'`,
    ...valueCases(flags),
    "      ;;",
  ].join("\n");
}

function valueCases(flags: readonly Flag[]): string[] {
  const byValue = Map.groupBy(
    flags.filter(({ value }) => value !== "none"),
    ({ value }) => (typeof value === "string" ? value : value.join(" ")),
  );
  const cases = [...byValue].map(
    ([value, each]) => `        ${each.map(({ name }) => name).join(" | ")}) value='${value}' ;;`,
  );
  return cases.length === 0 ? [] : ["      case $previous in", ...cases, "      esac"];
}

function names(things: readonly { readonly name: string }[]): string {
  return things.map(({ name }) => name).join(" ");
}
