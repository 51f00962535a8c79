import { gzipSync } from "node:zlib";
import type { RequestHandler, Router } from "express";
import { methodNotAllowed, methodNotAllowedError, notFoundError } from "../middleware/not-found.ts";
import { send } from "../middleware/respond.ts";
import type { ContentPolicy } from "../middleware/response-headers.ts";
import { createRouter } from "../resources/router.ts";
import { DOCS_ASSETS, type DocsAsset, gzippedAsset } from "./docs-assets.ts";
import { openApiDocument } from "./document.ts";
import type { Operation } from "./operation.ts";
import { Page } from "./page.ts";

/** The page may only run its own scripts and call its own server. */
const POLICY: ContentPolicy = {
  "default-src": ["'none'"],
  "script-src": ["'self'"],
  "style-src": ["'self'"],
  // For the icons in the style sheet of swagger-ui.
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

/** Sends the OpenAPI document of these operations. */
export function openApiHandler(operations: readonly Operation[]): RequestHandler {
  const json = gzipSync(JSON.stringify(openApiDocument(operations)));
  return sendPage(new Page({ contentType: "application/json", gzipped: () => json }));
}

/** The OpenAPI document and the page that shows it, without authentication. */
export function docsRouter(document: RequestHandler): Router {
  const assets = new Map<string, Page>(DOCS_ASSETS.map((name) => [name, assetPage(name)]));
  const index = assets.get("index.html");
  assets.delete("index.html");
  if (!index) throw new Error("the documentation has no index.html");

  const router = createRouter();
  router.route("/openapi.json").get(document).all(methodNotAllowed);
  router.route("/docs").get(sendPage(index)).all(methodNotAllowed);
  router.route("/docs/:asset").all((request, response, next) => {
    const page = assets.get(request.params.asset);
    if (!page) throw notFoundError();
    if (request.method !== "GET" && request.method !== "HEAD") throw methodNotAllowedError("GET, HEAD");
    return sendPage(page)(request, response, next);
  });
  return router;
}

function sendPage(page: Page): RequestHandler {
  return (request, response) => {
    const { headers, body } = page.representation(request.headers["accept-encoding"]);
    send(response, 200, headers, body);
  };
}

function assetPage(name: DocsAsset): Page {
  const extension = name.slice(name.lastIndexOf(".") + 1);
  return new Page({
    contentType: CONTENT_TYPES[extension] ?? "",
    policy: POLICY,
    gzipped: () => gzippedAsset(name),
  });
}
