import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../src/all-commands.ts";
import { runProgram } from "../../src/cli/program.ts";
import { argumentTerm } from "../../src/settings/option.ts";
import { fakeIo } from "../support/fakes/fake-io.ts";

async function help(...words: string[]): Promise<string> {
  const io = fakeIo();
  expect(await runProgram(COMMANDS, [...words, "--help"], io)).toBe(0);
  return io.written.out;
}

describe("the program", () => {
  test("lists every command once in its help, under the heading of its audience", async () => {
    const sections = (await help()).split(/\n(?=\S.*:\n)/);
    const named = (heading: string) => {
      const section = sections.find((each) => each.startsWith(heading)) ?? "";
      return [...section.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name);
    };
    expect(named("Operator processes:")).toEqual(["api", "controller"]);
    const others = ["Platform team commands", "Customer commands", "Commands:"].flatMap(named);
    const names = COMMANDS.commands.map(({ name }) => name.split(" ")[0]);
    expect([...others, "api", "controller"].sort()).toEqual([...new Set([...names, "help"])].sort());
    expect(sections.join("\n")).toMatch(/^ {2}completion <shell> {2,}print/m);
    expect(named("Platform team commands")).toEqual(expect.arrayContaining(["admin", "status"]));
  });

  test("has no two commands with the same name", () => {
    const names = COMMANDS.commands.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(COMMANDS.commands)(
    "describes $name, its flags and an example",
    async ({ name: words, ...command }) => {
      const text = await help(...words.split(" "));
      expect(text).toContain(`Usage: pipe-scaling ${words}`);
      for (const each of command.arguments) expect(text.split("\n")[0]).toContain(argumentTerm(each));
      for (const { flag, variable } of command.options) expect(text).toContain(flag ?? variable);
      expect(command.examples.length).toBeGreaterThan(0);
      for (const example of command.examples) expect(`${example} `).toMatch(new RegExp(`^${words} `));
    },
  );
});
