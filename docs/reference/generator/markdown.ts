/** Formats text as code, so that Markdown does not interpret it. */
export function code(text: string): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}

export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  return `${[line(columns), `|${"---|".repeat(columns.length)}`, ...rows.map(line)].join("\n")}\n`;
}

export function block(language: string, text: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\n`;
}

/** Joins paragraphs, tables and headings with an empty line, without the empty ones. */
export function sections(...parts: readonly string[]): string {
  return `${parts
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("\n\n")}\n`;
}

/** Returns a link to a heading of this page, with the anchor that GitHub generates. */
export function linkTo(heading: string, text = heading): string {
  const anchor = heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
  return `[${text}](#${anchor})`;
}

export function sentence(text: string): string {
  const capitalized = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.:!?]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}

/** Escapes bars, which would end the cell even in code, and angle brackets outside code, which would start a tag. */
function cell(text: string): string {
  const parts = text.replace(/\s*\n\s*/g, " ").split(/(`[^`]*`)/);
  return parts
    .map((part, at) => (at % 2 === 1 ? part : part.replaceAll("<", "\\<")))
    .join("")
    .replaceAll("|", "\\|");
}
