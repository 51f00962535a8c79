import express, { type Router } from "express";

/** A router that distinguishes case and trailing slashes, which are settings of each router and not inherited. */
export function createRouter(): Router {
  return express.Router({ strict: true, caseSensitive: true });
}
