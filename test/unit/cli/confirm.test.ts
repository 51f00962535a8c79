import { describe, expect, test } from "vitest";
import { confirm } from "../../../src/cli/confirm.ts";
import { CliError } from "../../../src/cli/failure.ts";
import { UsageError } from "../../../src/settings/option.ts";
import { fakeIo } from "../../support/fakes/fake-io.ts";

const QUESTION = "Delete API key ci?";

describe("the confirmation of a destructive command", () => {
  test("is requested on standard error if there is a terminal", async () => {
    const io = fakeIo({ input: true, answers: ["y"] });
    await confirm(io, false, QUESTION);
    expect(io.written).toEqual({ out: "", err: "Delete API key ci? [y/N] " });
  });

  test.each(["y", "Y", "yes", " YES "])("is given by %j", async (answer) => {
    await expect(confirm(fakeIo({ input: true, answers: [answer] }), false, QUESTION)).resolves.toBe(
      undefined,
    );
  });

  test.each([[""], ["n"], ["no"], ["yeah"], ["y n"], []])("is declined by %j", async (...answers) => {
    const declined = confirm(fakeIo({ input: true, answers }), false, QUESTION);
    await expect(declined).rejects.toThrow(new CliError("Nothing was changed."));
  });

  test("is a question on one line, regardless of the names in it", async () => {
    const io = fakeIo({ input: true, answers: ["y"] });
    await confirm(io, false, "Delete organization Acme\u001b[2K\r\n?");
    expect(io.written.err).toBe("Delete organization Acme [2K ? [y/N] ");
  });

  test("is not requested with --yes", async () => {
    const io = fakeIo({ input: true });
    await confirm(io, true, QUESTION);
    expect(io.written.err).toBe("");
  });

  test("fails without a terminal, with a hint to use --yes", async () => {
    const io = fakeIo({ answers: ["y"] });
    const refused = confirm(io, false, QUESTION);
    await expect(refused).rejects.toThrow(UsageError);
    await expect(refused).rejects.toThrow(
      "Delete API key ci? Standard input is not a terminal. Confirm with --yes.",
    );
    expect(io.written.err).toBe("");
  });
});
