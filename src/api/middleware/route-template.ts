import type { Request } from "express";

/** Templates by express's own route objects, of which there are as many as operations. */
const templates = new WeakMap<object, string>();

/** `/v1/things/{thingId}` of the route that matched the request, for logs and metrics; `undefined` if none did. */
export function routeTemplate(request: Request): string | undefined {
  const route: { readonly path: string | readonly string[] } | undefined = request.route;
  if (route === undefined) return undefined;
  const known = templates.get(route);
  if (known !== undefined) return known;
  // Path aliases come behind the path itself (path-aliases.ts).
  const path = typeof route.path === "string" ? route.path : (route.path[0] ?? "");
  const template = path.replace(/:(\w+)/g, "{$1}");
  templates.set(route, template);
  return template;
}
