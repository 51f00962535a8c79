import { gzipSync } from "node:zlib";
import { DOCS_ASSETS, type DocsAsset, gzippedAsset } from "./docs-assets.ts";
import { openApiDocument } from "./openapi.ts";
import { Page } from "./page.ts";
import type { Route } from "./routes.ts";
import type { ContentPolicy } from "./security-headers.ts";

/** It runs its own scripts and asks its own server, and nothing else. */
const POLICY: ContentPolicy = {
  "default-src": ["'none'"],
  "script-src": ["'self'"],
  "style-src": ["'self'"],
  // The icons in swagger-ui's style sheet.
  "img-src": ["'self'", "data:"],
  "connect-src": ["'self'"],
  "base-uri": ["'none'"],
  "form-action": ["'none'"],
  "frame-ancestors": ["'none'"],
};

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
};

/** The OpenAPI document of these routes and the page that shows it, by path. */
export function docsPages(routes: readonly Route[]): ReadonlyMap<string, Page> {
  const json = gzipSync(JSON.stringify(openApiDocument(routes)));
  const document = (route: string) =>
    new Page({ route, contentType: "application/json", gzipped: () => json });
  return new Map([
    ["/openapi.json", document("/openapi.json")],
    ["/v1", document("/v1")],
    ...DOCS_ASSETS.map((name) => assetPage(name)),
  ]);
}

function assetPage(name: DocsAsset): [string, Page] {
  const isEntry = name === "index.html";
  const page = new Page({
    route: isEntry ? "/docs" : "/docs/{asset}",
    contentType: CONTENT_TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "",
    policy: POLICY,
    gzipped: () => gzippedAsset(name),
  });
  return [isEntry ? "/docs" : `/docs/${name}`, page];
}
