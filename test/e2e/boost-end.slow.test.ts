import { it } from "vitest";
import { BOOST_END, follow, splitPage, stepsOf } from "./tutorial.ts";

it("docs/how-to/boost.md shows a boost that ends in place, with the same pods, although no controller runs at its end", {
  timeout: 420_000,
}, async () => {
  const [before] = splitPage("tutorial.md", "## Break it");
  const [, boostEnd] = splitPage("how-to/boost.md", BOOST_END);
  const [, removal] = splitPage("tutorial.md", "## Remove everything");
  await follow([...stepsOf(before), ...stepsOf(boostEnd), ...stepsOf(removal)]);
});
