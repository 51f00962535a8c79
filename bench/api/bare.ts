import express from "express";
import { urlOf } from "../../src/telemetry/ops-server.ts";

/**
 * The first baseline, a separate process: an express app that returns a constant, written as in the guide of express.
 * Its arguments are the path and the constant; it logs its address.
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
