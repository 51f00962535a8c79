import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { thirdPartyLicenses } from "../../../deploy/image/third-party-licenses.ts";
import { temporaryFolder } from "../../support/fixtures/kubeconfig.ts";

/** Writes the files of packages. @returns their paths */
function packages(files: Readonly<Record<string, string>>): string[] {
  const dir = join(temporaryFolder(), "node_modules");
  return Object.entries(files).map(([name, text]) => {
    const path = join(dir, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  });
}

const manifest = (name: string) => JSON.stringify({ name, version: "1.0.0", license: "MIT" });

it("collects the license and the notice of each package once, sorted by name", () => {
  const files = packages({
    "b/package.json": manifest("b"),
    "b/LICENSE-MIT": "license of b\n",
    "b/node_modules/@scope/a/package.json": manifest("@scope/a"),
    "b/node_modules/@scope/a/license.md": "license of a",
    "b/node_modules/@scope/a/NOTICE": "notice of a",
  });
  expect(thirdPartyLicenses([...files, "/work/src/main.ts"])).toBe(
    "@scope/a 1.0.0 (MIT)\n====================\n\nnotice of a\n\nlicense of a\n\n\n" +
      "b 1.0.0 (MIT)\n=============\n\nlicense of b\n",
  );
});

it("includes the licenses of packages that a bundled file contains, but not those of other files", () => {
  const [, used = ""] = packages({
    "a/package.json": manifest("a"),
    "a/used.js": "",
    "a/LICENSE": "license of a",
    "a/used.js.LICENSE.txt": "license of a part",
    "a/unused.js.LICENSE.txt": "license of another part",
  });
  const text = thirdPartyLicenses([used]);
  expect(text).toContain("license of a\n\nlicense of a part\n");
  expect(text).not.toContain("another part");
});

it("takes the license from the README if the package has no license file", () => {
  const files = packages({
    "a/package.json": manifest("a"),
    "a/README.md": "# a\n\nUse it.\n\nLicense (MIT)\n---\nCopyright A\n",
  });
  expect(thirdPartyLicenses(files)).toContain("\n\nLicense (MIT)\n---\nCopyright A\n");
});

it("rejects a package without a license text", () => {
  const files = packages({ "a/package.json": manifest("a"), "a/README.md": "# a\n" });
  expect(() => thirdPartyLicenses(files)).toThrow(/node_modules\/a has no license text/);
});
