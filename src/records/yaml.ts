import {
  Composer,
  type CST,
  type Document,
  isScalar,
  Lexer,
  LineCounter,
  Parser,
  visit,
  YAMLParseError,
} from "yaml";
import type { Parsed } from "./parse.ts";

/** Deepest nesting, in nodes that are open at once; the formats of this project need 8. */
const MAX_DEPTH = 16;

/** Most tokens of a value. A list of 1300 addresses with descriptions is 64 KiB long and has 22,000. */
const MAX_TOKENS = 30_000;

/**
 * Parses YAML in a time proportional to its length, which the caller bounds: 64 KiB take at most about 100 ms.
 *
 * `parseDocument` reports every wrong character and compares each key of a map with all others, which takes a minute
 * for 100 KB. The parts of the parser allow stopping at the first wrong token, and a set finds duplicate keys. Aliases
 * are rejected, because a few bytes of them can expand to gigabytes.
 *
 * @param schema `failsafe` leaves every scalar a string
 */
export function readYaml(text: string, schema: "failsafe" | "core"): Parsed<unknown> {
  const lines = new LineCounter();
  try {
    const composer = new Composer({ schema, prettyErrors: false, uniqueKeys: false, stringKeys: true });
    const [document, second] = composer.compose(parseTokens(text, lines), true, text.length);
    const [error] = document?.errors ?? [];
    if (error) throw error;
    if (second) throw errorAt(second.range[0], "MULTIPLE_DOCS");
    if (document) requireUniqueKeys(document);
    return { ok: true, value: document?.toJS({ maxAliasCount: 0 }) };
  } catch (error) {
    return { ok: false, problem: describe(error, lines) };
  }
}

/** @throws YAMLParseError at the first wrong token, and where the nesting or the number of tokens exceeds its limit */
function parseTokens(text: string, lines: LineCounter): CST.Token[] {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const parsed: CST.Token[] = [];
  let count = 0;
  for (const source of new Lexer().lex(text)) {
    parsed.push(...parser.next(source));
    // Each escape sequence can be an error, too, and 32,000 errors take 200 ms.
    count += source.startsWith('"') ? 2 * source.split("\\").length - 1 : 1;
    if (count > MAX_TOKENS || parser.stack.length > MAX_DEPTH) {
      throw errorAt(parser.offset, "RESOURCE_EXHAUSTION");
    }
    const last = parsed.at(-1);
    if (last?.type === "error") throw errorAt(last.offset, "UNEXPECTED_TOKEN");
  }
  return [...parsed, ...parser.end()];
}

function requireUniqueKeys(document: Document): void {
  visit(document, {
    Map(_key, { items }) {
      const keys = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) throw errorAt(key.range?.[0] ?? 0, "DUPLICATE_KEY");
        keys.add(key.value);
      }
    },
  });
}

function errorAt(offset: number, code: YAMLParseError["code"]): YAMLParseError {
  return new YAMLParseError([offset, offset + 1], code, code);
}

/** Without the message of the parser, because it quotes the text, and the text of a Secret must not be logged. */
function describe(error: unknown, lines: LineCounter): string {
  if (!(error instanceof YAMLParseError)) return "is not YAML without aliases";
  const { line, col } = lines.linePos(error.pos[0]);
  const where = `at line ${line}, column ${col}`;
  return error.code === "RESOURCE_EXHAUSTION"
    ? `is nested more than ${MAX_DEPTH} levels deep or has more than ${MAX_TOKENS} tokens, ${where}`
    : `is not YAML without aliases: ${error.code} ${where}`;
}
