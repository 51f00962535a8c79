import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import bundledChromium from "@sparticuz/chromium";
import { type Browser, chromium } from "playwright-core";
import { vi } from "vitest";

const run = promisify(execFile);

/** Browsers of the Linux distribution, used if the one from npm lacks libraries. */
const INSTALLED = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export interface RunningBrowser {
  readonly browser: Browser;
  /** Closes the browser and removes its files. */
  stop(): Promise<void>;
}

/** Starts a headless browser, or returns the reason why none can run. */
export async function startBrowser(): Promise<RunningBrowser | string> {
  const dir = await mkdtemp(join(tmpdir(), "pipe-scaling-browser-"));
  const clean = () => rm(dir, { recursive: true, maxRetries: 5 });
  // The package unpacks itself into this folder, and the browser keeps its profile in it.
  vi.stubEnv("TMPDIR", dir);
  try {
    const found = await findExecutable();
    if (typeof found === "string") {
      await clean();
      return found;
    }
    const browser = await chromium.launch({
      ...found,
      // Root cannot use it, nor can others where AppArmor restricts user namespaces, such as on Ubuntu 24.04.
      chromiumSandbox: false,
      args: [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-gpu",
        "--disable-quic",
        "--disable-sync",
        "--no-first-run",
      ],
    });
    return {
      browser,
      async stop() {
        await browser.close();
        await clean();
      },
    };
  } catch (error) {
    await clean();
    throw error;
  } finally {
    vi.unstubAllEnvs();
  }
}

async function findExecutable(): Promise<{ readonly executablePath: string } | string> {
  const problems: string[] = [];
  for (const candidate of [
    bundled,
    ...INSTALLED.filter((path) => existsSync(path)).map((path) => async () => path),
  ]) {
    try {
      const executablePath = await candidate();
      await run(executablePath, ["--version"]);
      return { executablePath };
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  }
  return `no browser can be run here: ${problems.join("; ")}`;
}

async function bundled(): Promise<string> {
  if (process.platform !== "linux") throw new Error("the browser from npm is for Linux only");
  return await bundledChromium.executablePath();
}
