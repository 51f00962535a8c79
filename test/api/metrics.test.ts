import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect, test } from "vitest";
import { exchangeRaw } from "./client.ts";
import { clientOfText } from "./environment.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

const environment = setUpEnvironment("metrics");
const { organizationId, serviceId, path, admin } = setUpTenant(environment);
const api = setUpApi(environment);
const { authorization } = admin;

/** Returns the samples by name and labels. */
async function scrape(of = api): Promise<{ text: string; value: (series: string) => number | undefined }> {
  const { text } = await clientOfText(of.opsUrl)("/metrics");
  const samples = new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
  return { text, value: (series) => samples.get(series) };
}

const SCALING = "/v1/organizations/{organizationId}/services/{serviceId}/pipesCdcScaling";

test("the metrics cover requests, authentications, caches and cluster requests, with a bounded set of labels", async () => {
  const before = await scrape();

  await api.send({ path, authorization });
  const headers = { "Content-Type": "application/json" };
  const body = '{"replicaCpuMillicores":3000}';
  expect((await api.send({ method: "PATCH", path, authorization, headers, body })).status).toBe(200);
  await api.send({ path: "/v1/organizations", authorization: "Basic d3Jvbmc6d3Jvbmc=" });
  await api.send({ path: "/v1/organizations" });
  await api.send({ path: "/no-such-path" });
  await api.send({ method: "PROPFIND", path: "/v1/organizations", authorization });
  await exchangeRaw(api.url, "not http\r\n\r\n");

  const last = 'pipe_scaling_http_requests_total{method="none",route="none",code="400"}';
  const seen = async () => {
    const now = await scrape();
    return now.value(last) !== before.value(last) && now;
  };
  // Scrapes within half a second share one text.
  const after = await waitFor(seen, { what: "the metrics to count the last request" });
  const rise = (series: string) => (after.value(series) ?? 0) - (before.value(series) ?? 0);
  const requests = (labels: string) => rise(`pipe_scaling_http_requests_total{${labels}}`);
  expect({
    read: requests(`method="GET",route="${SCALING}",code="200"`),
    write: requests(`method="PATCH",route="${SCALING}",code="200"`),
    unauthenticated: requests('method="GET",route="none",code="401"'),
    unmatched: requests('method="GET",route="none",code="404"'),
    otherMethod: requests('method="other",route="/v1/organizations",code="405"'),
    noRequest: requests('method="none",route="none",code="400"'),
    observed: rise(`pipe_scaling_http_request_duration_seconds_count{method="PATCH",route="${SCALING}"}`),
    accepted: rise('pipe_scaling_authentications_total{result="accepted"}'),
    refused: rise('pipe_scaling_authentications_total{result="refused"}'),
    absent: rise('pipe_scaling_authentications_total{result="absent"}'),
    applied: rise(
      'pipe_scaling_cluster_request_duration_seconds_count{verb="patch",resource="pipescalings",code="200"}',
    ),
  }).toEqual({
    read: 1,
    write: 1,
    unauthenticated: 2,
    unmatched: 1,
    otherMethod: 1,
    noRequest: 1,
    observed: 1,
    accepted: 3,
    refused: 1,
    absent: 1,
    applied: 1,
  });
  const calls = `pipe_scaling_cluster_request_duration_seconds_count{verb="watch",resource="secrets",code="200"}`;
  expect(after.value(calls)).toBe(1);
  for (const of of [
    `resource="secrets",namespace="${environment.records}"`,
    `resource="configmaps",namespace="${environment.records}"`,
    'resource="pipescalings",namespace=""',
  ]) {
    expect(after.value(`pipe_scaling_cache_synced{${of}}`)).toBe(1);
    expect(after.value(`pipe_scaling_cache_age_seconds{${of}}`)).toBeGreaterThanOrEqual(0);
  }
  expect(after.value('pipe_scaling_limit_hits_total{limit="key"}')).toBe(0);
  expect(after.value('pipe_scaling_limit_hits_total{limit="source"}')).toBe(0);
  for (const hidden of [
    organizationId,
    serviceId,
    admin.id,
    admin.keyId,
    admin.keySecret,
    "no-such-path",
    "PROPFIND",
  ]) {
    expect(after.text).not.toContain(hidden);
  }
});

test("the metrics count rate-limited requests by limit", async () => {
  const strict = await environment.startReadyApi({ rateLimit: 1, failedLogins: 1 });
  const statuses: number[] = [];
  for (const credentials of [
    authorization,
    authorization,
    "Basic d3Jvbmc6d3Jvbmc=",
    "Basic d3Jvbmc6d3Jvbmc=",
  ]) {
    statuses.push((await strict.send({ path: "/v1/organizations", authorization: credentials })).status);
  }
  expect(statuses).toEqual([200, 429, 401, 429]);
  const { value } = await scrape(strict);
  expect(value('pipe_scaling_limit_hits_total{limit="key"}')).toBe(1);
  expect(value('pipe_scaling_limit_hits_total{limit="source"}')).toBe(1);
  expect(value('pipe_scaling_authentications_total{result="refused"}')).toBe(2);
  await strict.stop();
});
