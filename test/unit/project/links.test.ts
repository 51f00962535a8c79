import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const NOT_OURS = /^(node_modules|dist|coverage|\..*)$/;

function pagesUnder(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) return NOT_OURS.test(entry.name) ? [] : pagesUnder(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

function withoutBlocks(page: string): string {
  return page.replaceAll(/^( *)```.*?^\1```$/gms, "");
}

/** Returns the targets of a page's links and images in this repository, including those in HTML attributes. */
function linksOf(page: string): string[] {
  const text = withoutBlocks(page).replaceAll(/`[^`\n]*`/g, "");
  const found = text.matchAll(/\]\(<?([^()\s>]+)>?\)|\b(?:src|href)="([^"]+)"/g);
  return [...found].map(([, link, source]) => link ?? source ?? "").filter((link) => !/^[a-z]+:/.test(link));
}

/** Returns the anchors that GitHub generates for the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const headings = [...withoutBlocks(page).matchAll(/^#+ +(.+)$/gm)].map(([, heading = ""]) =>
    slugOf(heading),
  );
  return new Set(
    headings.map((slug, at) => {
      const before = headings.slice(0, at).filter((other) => other === slug).length;
      return before === 0 ? slug : `${slug}-${before}`;
    }),
  );
}

function slugOf(heading: string): string {
  const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
  return words.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-");
}

/** Returns `page: link` for each broken link. */
function deadLinks(root: string): string[] {
  return pagesUnder(root).flatMap((path) =>
    linksOf(readFileSync(path, "utf8"))
      .filter((link) => !leadsSomewhere(path, link))
      .map((link) => `${relative(root, path)}: ${link}`),
  );
}

function leadsSomewhere(from: string, link: string): boolean {
  const [file = "", anchor] = link.split("#");
  const path = file === "" ? from : resolve(dirname(from), decodeURI(file));
  if (!existsSync(path)) return false;
  if (anchor === undefined) return true;
  return path.endsWith(".md") && anchorsOf(readFileSync(path, "utf8")).has(anchor);
}

/** Returns `page: path` for each missing source file that a page names. */
function deadPaths(root: string): string[] {
  return pagesUnder(root).flatMap((page) => {
    const paths = withoutBlocks(readFileSync(page, "utf8")).matchAll(
      /`((?:src|test|deploy|bench|docs)\/[\w./-]*\.\w+)`/g,
    );
    return [...paths].flatMap(([, path = ""]) =>
      existsSync(join(root, path)) ? [] : [`${relative(root, page)}: ${path}`],
    );
  });
}

const SOURCE = /\.(ts|mjs|js|ya?ml|tpl|sh|txt)$|(^|\/)Dockerfile$/;

function sourcesUnder(dir: string): string[] {
  return (
    readdirSync(dir, { withFileTypes: true, recursive: true })
      .map((entry) => join(entry.parentPath, entry.name))
      // This file cites pages that exist only in its tests.
      .filter((path) => SOURCE.test(path) && path !== fileURLToPath(import.meta.url))
  );
}

/** Returns the comments of TypeScript code, one after the other. A `//` after a colon belongs to a URL. */
function commentsIn(source: string): string {
  return [...source.matchAll(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm)].map(([comment]) => comment).join("\n");
}

/** Finds `docs/page.md`, `docs/page.md#heading`, `docs/adr/0001`, `adr/0001` and `ADR 0001` in a text. */
function citationsIn(text: string): string[] {
  const pages = text.match(/(?<![\w./-])docs\/[\w./-]*?\.md(?:#[\w-]+)?/g) ?? [];
  const decisions = [...text.matchAll(/\b(?:adr\/|ADR )(\d+)(?![\w-]*\.md)/g)].map(
    ([, number]) => `adr/${number}`,
  );
  return [...pages, ...decisions];
}

/** Returns `file: citation` for each missing page. In tests, strings are data, so only comments count. */
function deadCitations(root: string, folders: readonly string[]): string[] {
  const decisions = readdirSync(join(root, "docs", "adr"));
  const isThere = (citation: string) =>
    citation.startsWith("adr/")
      ? decisions.some((file) => file.startsWith(`${citation.slice("adr/".length)}-`))
      : leadsSomewhere(join(root, "README.md"), citation);
  return folders.flatMap((folder) =>
    sourcesUnder(join(root, folder)).flatMap((path) => {
      const text = readFileSync(path, "utf8");
      const citations = citationsIn(folder === "test" ? commentsIn(text) : text);
      return citations
        .filter((citation) => !isThere(citation))
        .map((citation) => `${relative(root, path)}: ${citation}`);
    }),
  );
}

it("every link between pages of the repository leads to an existing page and heading", () => {
  expect(pagesUnder(ROOT).length).toBeGreaterThan(40);
  expect(deadLinks(ROOT)).toEqual([]);
});

it("broken links are found, and valid links are accepted", () => {
  const dir = mkdtempSync(join(tmpdir(), "links-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  mkdirSync(join(dir, "docs"));
  const page = [
    "# A page: `code`, and more",
    "## Twice",
    "## Twice",
    "[there](docs/other.md#its-heading), [folder](docs), [here](#a-page-code-and-more), [second](#twice-1)",
    "[far](https://example.com/x.md), `[code](nowhere.md)`",
    "```md\n[block](nowhere.md)\n# Not a heading\n```",
    '[gone](docs/gone.md) [no heading](docs/other.md#gone) ![no picture](gone.svg) <img src="gone.png">',
    "[in a block](#not-a-heading) [third](#twice-2)",
  ].join("\n\n");
  writeFileSync(join(dir, "README.md"), page);
  writeFileSync(join(dir, "docs", "other.md"), "## Its heading\n\n[up](../README.md) [gone](../gone.md)");
  expect(deadLinks(dir).toSorted()).toEqual([
    "README.md: #not-a-heading",
    "README.md: #twice-2",
    "README.md: docs/gone.md",
    "README.md: docs/other.md#gone",
    "README.md: gone.png",
    "README.md: gone.svg",
    "docs/other.md: ../gone.md",
  ]);
});

it("every source file that a page names exists", () => {
  expect(deadPaths(ROOT)).toEqual([]);
});

it("a missing source file that a page names is found", () => {
  const dir = mkdtempSync(join(tmpdir(), "paths-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  mkdirSync(join(dir, "src"));
  writeFileSync(join(dir, "src", "here.ts"), "");
  writeFileSync(
    join(dir, "page.md"),
    "`src/here.ts`, `src/gone.ts`, `src/folder`, `npm run x`\n\n```sh\n`src/block.ts`\n```\n",
  );
  expect(deadPaths(dir)).toEqual(["page.md: src/gone.ts"]);
});

it("every page and heading that a source file cites exists", () => {
  expect(deadCitations(ROOT, ["src", "test", "deploy", "bench"])).toEqual([]);
});

it("a citation of a missing page, heading or decision is found, and valid citations are accepted", () => {
  const dir = mkdtempSync(join(tmpdir(), "citations-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const folder of ["docs/adr", "src/deep", "test"]) mkdirSync(join(dir, folder), { recursive: true });
  writeFileSync(join(dir, "docs", "page.md"), "# Page\n\n## Its heading");
  writeFileSync(join(dir, "docs", "adr", "0001-first.md"), "# 0001: First");
  const source = [
    "/** The page docs/page.md#its-heading, docs/page.md and docs/adr/0001. */",
    "// ADR 0001, docs/adr/0001-first.md, and https://example.com/docs/far.md",
    "/**",
    " * By docs/gone.md, docs/page.md#gone,",
    " * docs/adr/0002 and ADR 0003.",
    " */",
    'const data = "docs/data.md";',
  ].join("\n");
  writeFileSync(join(dir, "src", "deep", "source.ts"), source);
  writeFileSync(join(dir, "test", "source.test.ts"), source);
  const found = ["docs/gone.md", "docs/page.md#gone", "adr/0002", "adr/0003"];
  expect(deadCitations(dir, ["src", "test"]).toSorted()).toEqual(
    [
      ...[...found, "docs/data.md"].map((citation) => `src/deep/source.ts: ${citation}`),
      ...found.map((citation) => `test/source.test.ts: ${citation}`),
    ].toSorted(),
  );
});
