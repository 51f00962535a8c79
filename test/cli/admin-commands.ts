import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAIN, runProgram } from "../support/terminal/program.ts";
import { startInPty } from "../support/terminal/pty.ts";
import type { Ended } from "./admin-environment.ts";
import { AdminTestEnvironment } from "./admin-environment.ts";
import type { Way } from "./run-command.ts";

const ESCAPE = "\u001b";
const BOLD = `${ESCAPE}[1m`;
const NOT_BOLD = `${ESCAPE}[22m`;

/** Runs commands in a pipe or on a terminal, with the checks that apply to all of them. */
interface Medium {
  /** Runs a command that only reads or creates. */
  run(words: string): Promise<Ended>;
  /** Runs a destructive command, which is first declined and then confirmed. */
  destroy(words: string): Promise<Ended>;
}

/** Runs the program in a pipe. */
function inPipe(records: () => AdminTestEnvironment): Medium {
  return {
    async run(words) {
      const { code, out, err } = await runProgram([...words.split(" "), ...records().clusterFlags]);
      expect(out + err).not.toContain(ESCAPE);
      return { code: code ?? -1, out, err };
    },
    async destroy(words) {
      const refused = await this.run(words);
      expect(refused).toMatchObject({ code: 2, out: "" });
      expect(refused.err).toMatch(/\? Standard input is not a terminal. Confirm with --yes/);
      return await this.run(`${words} --yes`);
    },
  };
}

/** Starts a command in a terminal. Checks that headings are bold, and returns the text without styles. */
function start(records: () => AdminTestEnvironment, words: string) {
  const pty = startInPty(process.execPath, [MAIN, ...words.split(" "), ...records().clusterFlags], {
    columns: 200,
  });
  const ended = async (): Promise<Ended> => {
    const code = (await pty.exitCode) ?? -1;
    const written = pty.output().replaceAll("\r\n", "\n");
    const out = written.replaceAll(BOLD, "").replaceAll(NOT_BOLD, "");
    expect(out).not.toContain(ESCAPE);
    expect(written.includes(`${BOLD}ID${NOT_BOLD}`)).toBe(/^ID /m.test(out));
    return { code, out, err: out };
  };
  return { pty, ended };
}

/** Runs the program on a terminal. */
function onTerminal(records: () => AdminTestEnvironment): Medium {
  return {
    run: (words) => start(records, words).ended(),
    async destroy(words) {
      const response = async (text: string): Promise<Ended> => {
        const { pty, ended } = start(records, words);
        await pty.waitFor("? [y/N] ");
        pty.write(text);
        return await ended();
      };
      const no = await response("n\r");
      expect(no).toMatchObject({ code: 1, out: expect.stringContaining("Nothing was changed.\n") });
      const interrupted = await response("\u0003");
      expect(interrupted).toMatchObject({ code: 130, out: expect.stringContaining("Interrupted.\n") });
      return await response("y\r");
    },
  };
}

/** The value of a property in the table of a single object. */
function shown({ out }: Ended, heading: string): string {
  const value = new RegExp(`^${heading} +(\\S.*)$`, "m").exec(out)?.[1];
  if (value === undefined) throw new Error(`there is no ${heading} in ${out}`);
  return value;
}

const MEDIA = { "in a pipe": inPipe, "on a terminal": onTerminal };

/** Runs the commands that create, change and delete an organization, each as a separate process. */
export function describeAdminCommands(way: Way): void {
  describe(way, () => {
    let records: AdminTestEnvironment;
    beforeAll(async () => {
      records = await AdminTestEnvironment.create("cli-processes");
    });
    afterAll(() => records?.remove());
    const medium = MEDIA[way](() => records);

    it("an organization is created, shown, changed and deleted with everything in it", {
      timeout: 300_000,
    }, async () => {
      async function run(words: string): Promise<Ended> {
        const ended = await medium.run(words);
        expect({ words, ...ended }).toMatchObject({ words, code: 0 });
        return ended;
      }
      async function destroy(words: string, message: string): Promise<void> {
        const ended = await medium.destroy(words);
        expect({ words, ...ended }).toMatchObject({ words, code: 0, err: expect.stringContaining(message) });
      }

      const organization = shown(await run("admin organization create --name Acme --tier basic"), "ID");
      expect((await run("admin organization list")).out).toContain(organization);
      await run(`admin organization update ${organization} --tier scale`);
      const of = `--organization ${organization}`;

      const service = shown(await run(`admin service create ${of} --name orders --pipes-namespace p`), "ID");
      expect((await run(`admin service list ${of}`)).out).toContain(service);
      expect(shown(await run(`admin service show ${service}`), "REASON")).toBe("NoPipeScaling");

      const member = (id: string, role: string) =>
        `admin member add ${of} --user-id ${id} --name ${id} --email ${id}@example.com --role ${role}`;
      await run(member("ada", "admin"));
      await run(member("bob", "developer"));
      expect((await run(`admin member list ${of}`)).out).toMatch(/^ada +ada +ada@example.com +admin /m);
      await destroy(`admin member remove bob ${of}`, "User bob is no longer a member");

      const key = shown(await run(`admin key create ${of} --name ci --role admin`), "ID");
      expect((await run(`admin key list ${of}`)).out).toContain(key);
      expect(shown(await run(`admin key update ${key} --name build`), "NAME")).toBe("build");
      expect(shown(await run(`admin key rotate ${key}`), "KEY SECRET")).toMatch(/^\S{43}$/);
      await destroy(`admin key rotate ${key} --finish`, "Dropped the older secret");
      await run(`admin key disable ${key}`);
      expect(shown(await run(`admin key show ${key}`), "STATE")).toBe("disabled");
      await run(`admin key enable ${key}`);
      await destroy(`admin key delete ${key}`, `API key ${key} is deleted.`);

      const details = await run(`admin organization show ${organization}`);
      expect(shown(details, "TIER")).toBe("scale");
      expect(details.out).toContain(service);
      await destroy(`admin service delete ${service}`, `Service ${service} is deleted`);
      await destroy(`admin organization delete ${organization}`, `Organization ${organization} is deleted.`);
      expect((await run("admin organization list")).out).not.toContain(organization);

      const unknown = await medium.run(`admin organization show ${organization}`);
      expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("There is no organization") });
      const wrong = await medium.run("admin organization show acme");
      expect(wrong.code).toBe(2);
      expect(wrong.err).toContain('<organization> is "acme", but it must be a UUID');
    });
  });
}
