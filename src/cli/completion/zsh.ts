import { PROGRAM } from "../command.ts";
import type { Flag, Place, Word } from "./places.ts";

/** For a folder of `fpath`, under the name `_pipe-scaling`, or to be sourced after `compinit`. */
export function zshScript(places: readonly Place[]): string {
  const paths = places.map(({ path }) => path).filter(Boolean);
  return `#compdef ${PROGRAM}
# zsh completion of ${PROGRAM}

_pipe_scaling() {
  local place=
  while ((CURRENT > 2)); do
    case $place/$words[2] in
      (${paths.join("|")})
        place+=/$words[2]
        shift words
        ((CURRENT--))
        ;;
      (*) break ;;
    esac
  done

  case $place in
${places.map(placeCase).join("\n")}
  esac
}

if [[ $funcstack[1] == _pipe_scaling ]]; then
  _pipe_scaling "$@"
else
  compdef _pipe_scaling ${PROGRAM}
fi
`;
}

function placeCase({ path, words, flags }: Place): string {
  const specs = [...flags.map(flagSpec), ...(words.length > 0 ? [wordsSpec(words)] : [])];
  return [
    `    (${path === "" ? "''" : path})`,
    "      _arguments -S \\",
    `${specs.map((spec) => `        ${quoted(spec)}`).join(" \\\n")}`,
    "      ;;",
  ].join("\n");
}

function flagSpec({ name, description, value }: Flag): string {
  const text = `[${description.replace(/[\\[\]]/g, "\\$&")}]`;
  switch (value) {
    case "none":
      return `${name}${text}`;
    case "file":
      return `*${name}=${text}:file:_files`;
    case "any":
      return `*${name}=${text}:value: `;
    default:
      return `*${name}=${text}:value:(${value.join(" ")})`;
  }
}

/** Returns the spec of the first word: the names of commands with their descriptions. */
function wordsSpec(words: readonly Word[]): string {
  const each = words.map(({ name, description }) => `${name}\\:${quoted(description)}`);
  return `1:command:((${each.join(" ")}))`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
