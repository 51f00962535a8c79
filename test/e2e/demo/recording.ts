/** A line of output, with its time in milliseconds since the start. */
export interface RecordedLine {
  readonly text: string;
  readonly atMs: number;
}

const COLUMNS = 132;
const ROWS = 30;
const COLUMN_PX = 7.85;
const ROW_PX = 18;
const MARGIN_PX = 16;
/** Pause at the end before the animation repeats. */
const REST_MS = 6000;

/** A dark terminal, which is readable on light and dark pages. */
const STYLE = `
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d6dbe3; white-space: pre; }
  .dim { fill: #8b95a5; } .good { fill: #6cc76c; } .seen { fill: #5cc4d6; } .bad { fill: #f07178; } .title { font-weight: bold; }`;

/**
 * Renders output as an SVG that repeats it in real time, animated by CSS only. The SVG contains all lines; a cover
 * moves down over them, and the lines scroll up. With prefers-reduced-motion, it shows the end.
 */
export function recording(title: string, lines: readonly RecordedLine[]): string {
  const lengthMs = (lines.at(-1)?.atMs ?? 0) + REST_MS;
  const scrolled = (shown: number) => -ROW_PX * Math.max(0, shown - ROWS);
  const frames = (offset: (shown: number) => number) =>
    lines
      .map(({ atMs }, at) => `${percent(atMs / lengthMs)} { transform: translateY(${offset(at + 1)}px); }`)
      .join(" ");
  const [width, height] = [COLUMNS * COLUMN_PX + 2 * MARGIN_PX, ROWS * ROW_PX + 2 * MARGIN_PX];
  const covered = lines.length * ROW_PX;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escaped(title)}</title>
<style>${STYLE}
  .cover { transform: translateY(${covered}px); animation: uncover ${lengthMs}ms step-end infinite; }
  .lines { transform: translateY(${scrolled(lines.length)}px); animation: scroll ${lengthMs}ms step-end infinite; }
  @keyframes uncover { 0% { transform: none; } ${frames((shown) => shown * ROW_PX)} }
  @keyframes scroll { 0% { transform: none; } ${frames(scrolled)} }
  @media (prefers-reduced-motion: reduce) { .cover, .lines { animation: none; } }
</style>
<rect width="${width}" height="${height}" rx="8" fill="#1d2330"/>
<svg x="${MARGIN_PX}" y="${MARGIN_PX}" width="${width - 2 * MARGIN_PX}" height="${ROWS * ROW_PX}">
<g class="lines">
${lines.map(({ text }, at) => line(text, at)).join("\n")}
<rect class="cover" width="${width}" height="${covered + ROWS * ROW_PX}" fill="#1d2330"/>
</g>
</svg>
</svg>
`;
}

function line(text: string, at: number): string {
  const cut = text.length > COLUMNS ? `${text.slice(0, COLUMNS - 1)}…` : text;
  return `<text y="${at * ROW_PX + 13}">${spans(cut, at)}</text>`;
}

/** Uses the colors of the terminal (narration.ts). */
function spans(text: string, at: number): string {
  const [, time, mark, rest] = /^( *[\d.]+ s {2})([✓·✗])( .*)$/.exec(text) ?? [];
  if (time !== undefined && mark !== undefined && rest !== undefined) {
    return `${span("dim", time)}${span(MARKS[mark] ?? "bad", mark)}${escaped(rest)}`;
  }
  if (at === 0) return span("title", text);
  return text.startsWith("  ") ? span("dim", text) : escaped(text);
}

const MARKS: Readonly<Record<string, string>> = { "✓": "good", "·": "seen" };

function span(style: string, text: string): string {
  return `<tspan class="${style}">${escaped(text)}</tspan>`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)}%`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
