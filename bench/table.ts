/** Formats a Markdown table that is readable as plain text: each column has the width of its widest cell. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? "").padEnd(width)).join(" | ")} |`;
  const rule = widths.map((width) => "-".repeat(width));
  return [line(header), line(rule), ...rows.map(line)].join("\n");
}
