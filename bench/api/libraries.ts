import { randomUUID, timingSafeEqual } from "node:crypto";
import express from "express";
import basicAuth from "express-basic-auth";
import { rateLimit } from "express-rate-limit";
import helmet from "helmet";
import { pino } from "pino";
import { pinoHttp } from "pino-http";
import { Histogram, Registry } from "prom-client";
import { sha256 } from "../../src/records/api-key.ts";
import { urlOf } from "../../src/telemetry/ops-server.ts";

/**
 * The second baseline, a separate process: an express app that returns a constant, with the same features as the API
 * from the usual libraries with the usual settings. Its arguments are the path, the constant and the accepted
 * Authorization headers, in JSON; it logs its address.
 */
const [path = "", constant = "", accepted = "[]"] = process.argv.slice(2);
const result: unknown = JSON.parse(constant);
const authorizations: readonly string[] = JSON.parse(accepted);

const hashes = new Map(
  authorizations.map((header) => {
    const [id = "", secret = ""] = Buffer.from(header.slice("Basic ".length), "base64").toString().split(":");
    return [sha256(id), sha256(secret)];
  }),
);
const UNKNOWN = sha256(randomUUID());

function authorizer(id: string, secret: string): boolean {
  const expected = hashes.get(sha256(id)) ?? UNKNOWN;
  return timingSafeEqual(Buffer.from(sha256(secret)), Buffer.from(expected));
}

const registry = new Registry();
const duration = new Histogram({
  name: "http_request_duration_seconds",
  help: "Duration of requests, in seconds.",
  labelNames: ["method", "route", "code"],
  registers: [registry],
});

const app = express();
const logger = pino({ redact: ["req.headers.authorization"] });
app.use(pinoHttp({ logger, genReqId: () => randomUUID() }));
app.use((request, response, next) => {
  const end = duration.startTimer();
  response.once("finish", () => {
    end({ method: request.method, route: request.route?.path ?? "none", code: response.statusCode });
  });
  next();
});
app.use(helmet());
app.use(basicAuth({ authorizer, challenge: true }));
app.use(
  // So high that it counts but rejects nothing, like that of the measured API.
  rateLimit({
    windowMs: 1000,
    limit: 10_000 * authorizations.length,
    standardHeaders: "draft-8",
    legacyHeaders: true,
    keyGenerator: ({ headers }) => headers.authorization ?? "",
  }),
);
app.get(path, (_request, response) => {
  response.json(result);
});
const server = app.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ msg: "listening", url: urlOf(server) }));
});
