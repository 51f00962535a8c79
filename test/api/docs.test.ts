import { waitFor } from "@pipe-scaling/local-cluster/wait";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPERATIONS } from "../../src/api/resources/operations.ts";
import { type RunningBrowser, startBrowser } from "./docs-browser.ts";
import { createWorld, type RunningApi, type World } from "./world.ts";

let world: World;
let api: RunningApi;
let started: RunningBrowser | string;

beforeAll(async () => {
  world = await createWorld("docs");
  api = await world.startReadyApi();
  started = await startBrowser();
  if (typeof started === "string") console.log(started);
}, 120_000);

afterAll(async () => {
  if (typeof started === "object") await started.stop();
  await api?.stop();
  await world?.remove();
});

interface Visit {
  readonly page: Page;
  /** What the browser had to say that it would not about a page in order. */
  readonly complaints: readonly string[];
  readonly requests: readonly string[];
}

async function visit(
  { browser }: RunningBrowser,
  viewport: { width: number; height: number },
): Promise<Visit> {
  const page = await browser.newPage({ viewport });
  const complaints: string[] = [];
  const requests: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  const response = await page.goto(`${api.url}/docs`, { waitUntil: "load" });
  expect(response?.status()).toBe(200);
  await page.locator(".opblock").first().waitFor();
  return { page, complaints, requests };
}

/** Of the page's own text, so that spaces that it puts in for line breaks do not count. */
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
  it("shows the operations, complains of nothing and asks no other host", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const { page, complaints, requests } = await visit(started, { width: 1280, height: 900 });

    expect(await page.title()).toBe("pipe-scaling API");
    expect((await operationsOn(page)).sort()).toEqual(
      OPERATIONS.map(({ tag, method, path }) => [tag, method, path]).toSorted(),
    );
    for (const operation of await page.locator(".opblock").all())
      expect(await operation.isVisible()).toBe(true);
    expect(requests.length).toBeGreaterThan(4);
    expect(requests.filter((url) => !url.startsWith(`${api.url}/`) && !url.startsWith("data:"))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it("calls the API with a key", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const organizationId = await world.addOrganization({ name: "Acme of the docs" });
    const { keyId, keySecret, authorization } = await world.addKey({ organizationId });
    const isSeen = async () =>
      (await api.ask({ path: "/v1/organizations", authorization })).text.includes("Acme of the docs");
    await waitFor(isSeen, { what: "the organization to be known" });
    const { page, complaints } = await visit(started, { width: 1280, height: 900 });

    await page.locator(".btn.authorize").first().click();
    await page.locator("#auth-basic-username").fill(keyId);
    await page.locator("#auth-basic-password").fill(keySecret);
    await page.locator(".modal-btn.authorize").click();
    await page.locator(".btn-done").click();
    const operation = page.locator("#operations-Organization-listOrganizations");
    await operation.locator(".opblock-summary-control").click();
    await operation.locator(".try-out__btn").click();
    await operation.locator(".execute").click();
    const answer = operation.locator(".live-responses-table .response");
    await answer.waitFor();

    expect(await answer.locator(".response-col_status").textContent()).toContain("200");
    expect(await answer.textContent()).toContain("Acme of the docs");
    expect(complaints).toEqual([]);
  });

  it("fits a phone", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const { page } = await visit(started, { width: 360, height: 740 });
    const width = await page.evaluate("document.documentElement.scrollWidth");
    expect(width).toBe(360);
  });
});
