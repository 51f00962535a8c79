import { expect } from "vitest";
import type { CheckResult } from "../../src/cli/doctor/checks.ts";
import { runProgram } from "../support/terminal/program.ts";

export interface Report {
  readonly code: number | null;
  readonly results: readonly CheckResult[];
}

/** Runs doctor. Each result has a remedy, unless it is ok. */
export async function report(args: readonly string[]): Promise<Report> {
  const { code, out, err } = await runProgram([...args, "--output", "json"]);
  if (out === "") throw new Error(`no results: ${err}`);
  const { results }: { results: CheckResult[] } = JSON.parse(out);
  for (const { severity, message, remedy } of results) {
    if (severity !== "ok") expect(remedy, message).toMatch(/\S/);
  }
  return { code, results };
}

type Messages = readonly unknown[];

export interface Change {
  readonly added?: Messages;
  readonly removed?: Messages;
}

/**
 * Runs `act`, and waits until exactly these results have been added and removed.
 *
 * @param read runs doctor
 * @param textOf the results without what differs between runs
 */
export async function expectChange(
  act: () => Promise<unknown>,
  { added = [], removed = [] }: Change,
  read: () => Promise<Report>,
  textOf: (report: Report) => readonly string[],
): Promise<Report> {
  const before = textOf(await read());
  await act();
  let last: Report | undefined;
  await expect
    .poll(
      async () => {
        last = await read();
        const after = textOf(last);
        return {
          added: after.filter((each) => !before.includes(each)),
          removed: before.filter((each) => !after.includes(each)),
        };
      },
      { timeout: 60_000, interval: 500 },
    )
    .toEqual({ added, removed });
  if (!last) throw new Error("no report");
  return last;
}

export function remedyOf({ results }: Report, message: RegExp): string | undefined {
  return results.find((each) => message.test(each.message))?.remedy;
}
