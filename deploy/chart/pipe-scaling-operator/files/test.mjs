const [, api] = process.argv;
const problems = [];

async function expect(path, status, about) {
  const answer = await fetch(api + path, { signal: AbortSignal.timeout(10_000) });
  const body = await answer.text();
  process.stdout.write(`GET ${path}: ${answer.status}\n`);
  if (answer.status !== status)
    problems.push(`GET ${path} was answered ${answer.status}, not ${status}: ${body}`);
  return about?.(answer, body);
}

await expect("/openapi.json", 200, (_, body) => {
  if (!JSON.parse(body).paths) problems.push("/openapi.json is no OpenAPI document");
});
await expect("/v1/organizations", 401, (answer) => {
  if (!answer.headers.get("www-authenticate")) problems.push("the 401 does not say how to authenticate");
});
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exitCode = problems.length === 0 ? 0 : 1;
