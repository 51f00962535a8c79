import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const SCRIPT = ".github/commit-subjects.sh";
const SOURCE = fileURLToPath(new URL(`../../../${SCRIPT}`, import.meta.url));

/** A repository with these commits after the one that adds the script. */
function check(before: string, ...subjects: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), "commits-"));
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], { cwd: folder });
  git("init", "--quiet");
  git("commit", "--quiet", "--allow-empty", "--message", before);
  mkdirSync(join(folder, ".github"));
  copyFileSync(SOURCE, join(folder, SCRIPT));
  git("add", ".");
  git("commit", "--quiet", "--message", "CI: the check");
  for (const subject of subjects) git("commit", "--quiet", "--allow-empty", "--message", subject);
  const { status, stderr } = spawnSync(join(folder, SCRIPT), { cwd: folder, encoding: "utf8" });
  return { status, stderr };
}

it("a commit whose first line has 72 characters is accepted, and so are earlier commits", () => {
  expect(check("x".repeat(100), "x".repeat(72), "API: short\n\n".padEnd(300, "x"))).toEqual({
    status: 0,
    stderr: "",
  });
});

it("a commit whose first line has more characters is named, with the command that changes it", () => {
  const { status, stderr } = check("first", "API: short", "x".repeat(73), "last");
  expect(status).toBe(1);
  expect(stderr).toContain(`${"x".repeat(73)}\nShorten it: git rebase --interactive`);
  expect(stderr).not.toContain("API: short");
});
