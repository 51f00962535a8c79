/** Longest error text in UTF-16 code units, so that no request is echoed at length. */
const LENGTH_LIMIT = 500;

const CONTROL_CHARACTER_OR_LINE_SEPARATOR = /[\p{Cc}\p{Zl}\p{Zp}]/gu;

/**
 * An error message that any JSON parser and any terminal accepts, even if it quotes a request: well-formed Unicode,
 * control characters and line separators escaped as in JSON, and at most 500 UTF-16 code units.
 */
export function errorText(message: string): string {
  const visible = message.toWellFormed().replace(CONTROL_CHARACTER_OR_LINE_SEPARATOR, escapeOf);
  if (visible.length <= LENGTH_LIMIT) return visible;
  return `${prefixOf(visible, LENGTH_LIMIT - 1)}…`;
}

/** The first UTF-16 code units of a text; one fewer than `length` if that would split a surrogate pair. */
export function prefixOf(text: string, length: number): string {
  const prefix = text.slice(0, length);
  const splitsPair = (text.codePointAt(length - 1) ?? 0) > 0xffff;
  return splitsPair ? prefix.slice(0, -1) : prefix;
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
