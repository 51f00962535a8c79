import { gzipSync } from "node:zlib";
import type { RequestHandler, Router } from "express";
import type { Size } from "../../domain/size.ts";
import { apiError } from "../errors.ts";
import { methodNotAllowed, methodNotAllowedError } from "../middleware/not-found.ts";
import { send } from "../middleware/respond.ts";
import { openFile } from "../middleware/response-body.ts";
import type { ContentPolicy } from "../middleware/response-headers.ts";
import { createRouter } from "../resources/router.ts";
import { DOCS_ASSETS, type DocsAsset, docsAssetPath, gzippedAsset } from "./docs-assets.ts";
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

/** Returns the handler that sends the OpenAPI document of these operations. */
export function openApiHandler(operations: readonly Operation[], maximum: Size): RequestHandler {
  const json = Buffer.from(JSON.stringify(openApiDocument(operations, maximum)));
  return sendPage(
    new Page({
      contentType: "application/json",
      anyOrigin: true,
      gzipped: () => gzipSync(json),
      plain: () => json,
    }),
  );
}

export interface DocsOptions {
  readonly disableDocsPage: boolean;
}

/** The OpenAPI document and the page that shows it, without authentication. */
export function docsRouter(document: RequestHandler, { disableDocsPage }: DocsOptions): Router {
  const router = createRouter();
  router.route("/openapi.json").get(document).all(methodNotAllowed);
  if (!disableDocsPage) addPage(router);
  return router;
}

function addPage(router: Router): void {
  const assets = new Map<string, Page>(DOCS_ASSETS.map((name) => [name, assetPage(name)]));
  const index = assets.get("index.html");
  assets.delete("index.html");
  if (!index) throw new Error("the documentation has no index.html");

  router.route("/docs").get(sendPage(index)).all(methodNotAllowed);
  router.route("/docs/:asset").all((request, response, next) => {
    const page = assets.get(request.params.asset);
    if (!page) throw apiError("NoSuchPath");
    if (request.method !== "GET" && request.method !== "HEAD") throw methodNotAllowedError("GET, HEAD");
    return sendPage(page)(request, response, next);
  });
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
    plain: () => openFile(docsAssetPath(name)),
  });
}
