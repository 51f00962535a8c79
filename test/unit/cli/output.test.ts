import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { formatTable, printData, printList, printOne } from "../../../src/cli/output.ts";
import { fakeIo } from "../../support/fakes/fake-io.ts";

const rows = [
  { id: 1, name: "yes", createdAt: new Date("2026-01-31T12:00:00Z"), tags: ["a", "b"], gone: undefined },
  { id: 2, name: "two\u001b[2J\nlines", createdAt: undefined, tags: [], gone: undefined },
];

function printed(print: (io: ReturnType<typeof fakeIo>) => void, colors = false): string {
  const io = fakeIo({ colors, output: colors });
  print(io);
  expect(io.written.err).toBe("");
  return io.written.out;
}

describe("a list", () => {
  const list = (output: "table" | "json" | "yaml", colors = false) =>
    printed((io) => printList(io, output, ["id", "name", "createdAt", "tags"], rows), colors);

  test("is a readable table, in which no text can move the cursor or end a line", () => {
    expect(list("table")).toBe(
      [
        "ID  NAME           CREATED AT                TAGS",
        "1   yes            2026-01-31T12:00:00.000Z  a,b",
        "2   two [2J lines  -                         -",
        "",
      ].join("\n"),
    );
  });

  test("has bold headings if colors are enabled, with the same padding", () => {
    const bold = list("table", true);
    expect(bold).toContain("\u001b[1mID\u001b[22m  \u001b[1mNAME\u001b[22m ");
    expect(bold.replaceAll("\u001b[1m", "").replaceAll("\u001b[22m", "")).toBe(list("table"));
  });

  test("has the same data in JSON and YAML, without colors", () => {
    const data = [
      { id: 1, name: "yes", createdAt: "2026-01-31T12:00:00.000Z", tags: ["a", "b"] },
      { id: 2, name: "two\u001b[2J\nlines", tags: [] },
    ];
    expect(JSON.parse(list("json", true))).toEqual(data);
    expect(parse(list("yaml", true))).toEqual(data);
    // YAML 1.1 parsers read an unquoted yes as a boolean.
    expect(parse(list("yaml"), { version: "1.1", schema: "core" })).toEqual(data);
    expect(list("yaml")).toContain(': "yes"');
  });

  test("is also safe to print on a terminal as JSON and YAML, without losing characters", () => {
    // A C1 control code, DEL, a right-to-left override, and a format character beyond 16 bits.
    const text = `a\u009b31m\u007f\u202eb\u{e0001}c "quoted" \\u0041\n\tline`;
    const data = [{ name: text, turned: "a\u202eb", plain: "日本 🚀", [text]: "two\nlines" }];
    for (const [output, read] of [
      ["json", (text: string): unknown => JSON.parse(text)],
      ["yaml", (text: string): unknown => parse(text)],
    ] as const) {
      const written = printed((io) => printData(io, output, data));
      expect(written).not.toMatch(/[^\P{C}\n]/u);
      expect(read(written)).toEqual(data);
      expect(written).toContain("日本 🚀");
    }
  });

  test("has headings even if it is empty", () => {
    expect(printed((io) => printList(io, "table", ["id"], []))).toBe("ID\n");
    expect(printed((io) => printList(io, "yaml", ["id"], []))).toBe("[]\n");
  });
});

test("a single object has a line for each property", () => {
  expect(printed((io) => printOne(io, "table", { id: 1, keySuffix: "abcd", gone: undefined }))).toBe(
    "ID          1\nKEY SUFFIX  abcd\nGONE        -\n",
  );
});

test("an object prints its lists after its properties, or within the data", () => {
  const lists = {
    services: { columns: ["id"], rows: [{ id: "s" }] },
    members: { columns: ["userId"], rows: [] },
  };
  const details = (output: "table" | "json") => printed((io) => printOne(io, output, { id: "o" }, lists));
  expect(details("table")).toBe("ID  o\n\nSERVICES\nID\ns\n\nMEMBERS  none\n");
  expect(JSON.parse(details("json"))).toEqual({ id: "o", services: [{ id: "s" }], members: [] });
});

test("columns are as wide as their text on a terminal", () => {
  expect(
    formatTable([
      ["a", "b"],
      ["日本", "c"],
    ]),
  ).toBe("a     b\n日本  c\n");
});
