import { PROGRAM } from "../command.ts";
import type { Flag, Place } from "./places.ts";

export function fishScript(places: readonly Place[]): string {
  const paths = places.map(({ path }) => path).filter(Boolean);
  return `# fish completion of ${PROGRAM}

function __pipe_scaling_at
    set -l place ''
    for word in (commandline -opc)[2..]
        switch $place/$word
            case ${paths.join(" ")}
                set place $place/$word
        end
    end
    test "$place" = "$argv[1]"
end

complete -c ${PROGRAM} -f
${places.flatMap(lines).join("\n")}
`;
}

function lines({ path, words, flags }: Place): string[] {
  const at = `complete -c ${PROGRAM} -n ${quoted(`__pipe_scaling_at ${path === "" ? '""' : path}`)}`;
  return [
    ...words.map(({ name, description }) => `${at} -a ${name} -d ${quoted(description)}`),
    ...flags.map(
      ({ name, description, value }) =>
        `${at} -l ${name.slice(2)}${argumentOf(value)} -d ${quoted(description)}`,
    ),
  ];
}

function argumentOf(value: Flag["value"]): string {
  switch (value) {
    case "none":
      return "";
    case "file":
      return " -r -F";
    case "any":
      return " -x";
    default:
      return ` -x -a ${quoted(value.join(" "))}`;
  }
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
