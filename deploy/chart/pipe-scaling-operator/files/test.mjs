const [, api] = process.argv;
const problems = [];

async function expect(path, status, about) {
  const response = await fetch(api + path, { signal: AbortSignal.timeout(10_000) });
  const body = await response.text();
  process.stdout.write(`GET ${path}: ${response.status}\n`);
  if (response.status !== status)
    problems.push(`GET ${path} returned ${response.status} instead of ${status}: ${body}`);
  return about?.(response, body);
}

await expect("/openapi.json", 200, (_, body) => {
  if (!JSON.parse(body).paths) problems.push("/openapi.json is not an OpenAPI document");
});
await expect("/v1/organizations", 401, (response) => {
  if (!response.headers.get("www-authenticate")) problems.push("the 401 has no WWW-Authenticate header");
});
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exitCode = problems.length === 0 ? 0 : 1;
