import { oneOf } from "../../settings/values.ts";
import { defineCommand } from "../command.ts";
import { argument } from "../options.ts";
import { FILES } from "./candidates.ts";

/*
 * Each script asks `pipe-scaling __complete -- words…` for the candidates (candidates.ts). The compile cache of Node.js
 * saves a third of the time.
 */

export const COMPILE_CACHE = `\${XDG_CACHE_HOME:-$HOME/.cache}/pipe-scaling`;

/** For bash 3.2 (the version of macOS) and newer, without the package bash-completion. */
const bash = `# bash completion of pipe-scaling

_pipe_scaling() {
  local current= words=() at word description
  # bash splits a value at its colons and at signs, and completes only the part after the last one.
  for ((at = 1; at <= COMP_CWORD; at += 1)); do
    word=\${COMP_WORDS[at]}
    if [[ -n $word && $current == *[:@] || -n $current && $word == [:@]* ]]; then
      current+=$word
      words[\${#words[@]} - 1]=$current
    else
      current=$word
      words+=("$word")
    fi
  done
  [[ $current == = ]] && current=
  COMPREPLY=()
  while IFS=$'\\t' read -r word description; do
    COMPREPLY+=("$word")
  done < <(NODE_COMPILE_CACHE=${COMPILE_CACHE} pipe-scaling __complete -- "\${words[@]}" 2>/dev/null)
  if [[ \${COMPREPLY[0]} == ${FILES} ]]; then
    local IFS=$'\\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  fi
  local last=$current
  [[ $COMP_WORDBREAKS == *:* ]] && last=\${last##*:}
  [[ $COMP_WORDBREAKS == *@* ]] && last=\${last##*@}
  COMPREPLY=("\${COMPREPLY[@]#"\${current%"$last"}"}")
}

complete -F _pipe_scaling pipe-scaling
`;

/** For a folder of `fpath`, under the name `_pipe-scaling`, or to be sourced after `compinit`. */
const zsh = `#compdef pipe-scaling
# zsh completion of pipe-scaling

_pipe_scaling() {
  local -a lines=("\${(@f)$(NODE_COMPILE_CACHE=${COMPILE_CACHE} pipe-scaling __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compset -P '--*='
  if [[ $lines[1] == ${FILES} ]]; then
    _files
  elif [[ -n $lines[1] ]]; then
    lines=("\${(@)lines//:/\\\\:}")
    lines=("\${(@)lines/$'\\t'/:}")
    _describe pipe-scaling lines
  fi
}

if [[ $funcstack[1] == _pipe_scaling ]]; then
  _pipe_scaling "$@"
else
  compdef _pipe_scaling pipe-scaling
fi
`;

const fish = `# fish completion of pipe-scaling

function __pipe_scaling
    set -q XDG_CACHE_HOME; or set -l XDG_CACHE_HOME ~/.cache
    set -lx NODE_COMPILE_CACHE $XDG_CACHE_HOME/pipe-scaling
    set -l current (commandline -ct)
    set -l flag (string match -r '^--[^=]+=' -- $current)
    set -l lines (pipe-scaling __complete -- (commandline -opc)[2..] "$current" 2>/dev/null)
    if test "$lines" = ${FILES}
        set lines (__fish_complete_path (string replace -r '^--[^=]+=' '' -- $current))
    end
    test -n "$lines"; and printf "$flag%s\\n" $lines
end

complete -c pipe-scaling -f -a '(__pipe_scaling)'
`;

const SCRIPTS = { bash, zsh, fish };

export const completion = defineCommand({
  name: "completion",
  summary: "print a script that completes commands, flags and values in a shell",
  details: "The script calls pipe-scaling, so it stays valid after an update.",
  examples: [
    "completion bash >> ~/.bashrc",
    "completion zsh > ~/.zfunc/_pipe-scaling    # a folder of fpath",
    "completion fish > ~/.config/fish/completions/pipe-scaling.fish",
  ],
  options: { shell: argument(oneOf("bash", "zsh", "fish"), "bash, zsh or fish") },
  async run({ shell }, io) {
    io.out(SCRIPTS[shell]);
  },
});
