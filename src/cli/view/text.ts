const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Characters that take two columns (Unicode, East Asian Width); what is called ambiguous takes one nearly everywhere. */
const WIDE =
  /\ufe0f|[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Nothing that moves the cursor, changes the colours, turns the reading direction, or is not a character. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]+/gu;

/**
 * A text that others wrote, as one line that is safe on a terminal: names and messages come from records and
 * from objects of tenants, and could otherwise say anything to the terminal of who looks at them.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, " ");
}

/** The same for a text of several lines that must not lose a character: each of those is spelt instead. */
export function spelt(text: string, spell: (character: string) => string): string {
  return text.replace(UNPRINTABLE, (those) =>
    Array.from(those, (each) => (each === "\n" ? each : spell(each))).join(""),
  );
}

/** In columns of a terminal. Of a printable text. */
export function widthOf(text: string): number {
  return graphemes(text).reduce((sum, each) => sum + each.width, 0);
}

/** The text, or as much of its beginning as fits, with an ellipsis. */
export function clipped(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let [kept, left] = ["", columns - 1];
  for (const { character, width } of graphemes(text)) {
    if (width > left) break;
    kept += character;
    left -= width;
  }
  return columns < 1 ? "" : `${kept}…`;
}

export function padded(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)));
}

/** Lines of at most so many columns, broken at blanks; a word that is longer than a line is cut through. */
export function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").flatMap((each) => pieces(each, columns))) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (widthOf(longer) <= columns) line = longer;
    else {
      lines.push(line);
      line = word;
    }
  }
  return line === "" ? lines : [...lines, line];
}

function pieces(word: string, columns: number): string[] {
  if (widthOf(word) <= columns) return [word];
  const found: string[] = [];
  let piece = "";
  for (const { character } of graphemes(word)) {
    if (piece !== "" && widthOf(piece + character) > columns) {
      found.push(piece);
      piece = "";
    }
    piece += character;
  }
  return [...found, piece];
}

function graphemes(text: string): { readonly character: string; readonly width: number }[] {
  return [...GRAPHEMES.segment(text)].map(({ segment }) => ({
    character: segment,
    width: WIDE.test(segment) ? 2 : 1,
  }));
}
