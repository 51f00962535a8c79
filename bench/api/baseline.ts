import express from "express";
import { urlOf } from "../../src/telemetry/ops-server.ts";

/**
 * The baseline, a process of its own: an express app that answers a constant, written as its guide writes
 * one. It is given the path and the constant, and says where it listens.
 */
const [path = "", constant = ""] = process.argv.slice(2);
const result: unknown = JSON.parse(constant);

const app = express();
app.get(path, (_request, response) => {
  response.json(result);
});
const server = app.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ msg: "listening", url: urlOf(server) }));
});
