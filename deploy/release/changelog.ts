/** One list of changes of a version, such as "Added". */
export interface ChangelogGroup {
  readonly kind: string;
  readonly entries: readonly string[];
}

export interface ChangelogSection {
  /** Markdown below the heading of the version. */
  readonly body: string;
  readonly groups: readonly ChangelogGroup[];
}

/**
 * Returns what the changelog says about a version.
 *
 * @throws Error if the version has no section, or no release date
 */
export function changelogSection(changelog: string, version: string): ChangelogSection {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.startsWith(`[${version}]`));
  if (section === undefined) {
    throw new Error(`CHANGELOG.md has no section "## [${version}] - YYYY-MM-DD". Add it.`);
  }
  const [heading = "", ...lines] = section.split("\n");
  if (!/ - \d{4}-\d\d-\d\d$/.test(heading)) {
    throw new Error(
      `CHANGELOG.md has no release date of ${version}. Change "## ${heading}" to "## [${version}] - YYYY-MM-DD".`,
    );
  }
  const body = lines.join("\n").trim();
  return { body, groups: body.split(/^### /m).slice(1).map(groupOf) };
}

function groupOf(text: string): ChangelogGroup {
  const [kind = "", ...lines] = text.split("\n");
  const entries = lines
    .join("\n")
    .split(/^- /m)
    .slice(1)
    .map((entry) => entry.replaceAll(/\s+/g, " ").trim());
  return { kind: kind.trim(), entries };
}
