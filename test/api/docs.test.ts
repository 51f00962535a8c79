import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPERATIONS } from "../../src/api/resources/operations.ts";
import { type RunningBrowser, startBrowser } from "./docs-browser.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";

const environment = setUpEnvironment("docs");
const api = setUpApi(environment);
let started: RunningBrowser | string;

beforeAll(async () => {
  started = await startBrowser();
  if (typeof started === "string") console.log(started);
}, 120_000);

afterAll(async () => {
  if (typeof started === "object") await started.stop();
});

interface Visit {
  readonly page: Page;
  /** Warnings and errors in the browser console. */
  readonly consoleProblems: readonly string[];
  readonly requests: readonly string[];
}

async function visit(
  { browser }: RunningBrowser,
  viewport: { width: number; height: number },
): Promise<Visit> {
  const page = await browser.newPage({ viewport });
  const consoleProblems: string[] = [];
  const requests: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) consoleProblems.push(message.text());
  });
  page.on("pageerror", (error) => consoleProblems.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  const response = await page.goto(`${api.url}/docs`, { waitUntil: "load" });
  expect(response?.status()).toBe(200);
  await page.locator(".opblock").first().waitFor();
  return { page, consoleProblems, requests };
}

/** The operations on the page: tag, method and path. */
async function operationsOn(page: Page): Promise<string[][]> {
  return await page
    .locator(".opblock-tag-section")
    .evaluateAll((sections) =>
      sections.flatMap((section) =>
        [...section.querySelectorAll(".opblock")].map((operation) =>
          [
            section.querySelector("[data-tag]")?.getAttribute("data-tag"),
            operation.querySelector(".opblock-summary-method")?.textContent,
            operation.querySelector("[data-path]")?.getAttribute("data-path"),
          ].map((text) => text ?? ""),
        ),
      ),
    );
}

describe("/docs in a browser", () => {
  it("shows the operations without errors or requests to other hosts", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const { page, consoleProblems, requests } = await visit(started, { width: 1280, height: 900 });

    expect(await page.title()).toBe("pipe-scaling API");
    expect((await operationsOn(page)).sort()).toEqual(
      OPERATIONS.map(({ tag, method, path }) => [tag, method, path]).toSorted(),
    );
    for (const operation of await page.locator(".opblock").all())
      expect(await operation.isVisible()).toBe(true);
    expect(requests.length).toBeGreaterThan(4);
    expect(requests.filter((url) => !url.startsWith(`${api.url}/`) && !url.startsWith("data:"))).toEqual([]);
    expect(consoleProblems).toEqual([]);
  });

  it("can call the API with a key", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const organizationId = await environment.addOrganization({ name: "Acme of the docs" });
    const { keyId, keySecret, authorization } = await environment.addKey({ organizationId });
    await api.waitForOrganization(authorization);
    const { page, consoleProblems } = await visit(started, { width: 1280, height: 900 });

    await page.locator(".btn.authorize").first().click();
    await page.locator("#auth-basic-username").fill(keyId);
    await page.locator("#auth-basic-password").fill(keySecret);
    await page.locator(".modal-btn.authorize").click();
    await page.locator(".btn-done").click();
    const operation = page.locator("#operations-Organization-listOrganizations");
    await operation.locator(".opblock-summary-control").click();
    await operation.locator(".try-out__btn").click();
    await operation.locator(".execute").click();
    const shown = operation.locator(".live-responses-table .response");
    await shown.waitFor();

    expect(await shown.locator(".response-col_status").textContent()).toContain("200");
    expect(await shown.textContent()).toContain("Acme of the docs");
    expect(consoleProblems).toEqual([]);
  });

  it("fits the screen of a phone", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const { page } = await visit(started, { width: 360, height: 740 });
    const width = await page.evaluate("document.documentElement.scrollWidth");
    expect(width).toBe(360);
  });
});
