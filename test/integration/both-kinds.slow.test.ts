import { afterEach, beforeEach, describe, it } from "vitest";
import { TestEnvironment } from "../support/test-environment.ts";
import { CANARIES, expectBothResizedInPlace, expectBothRolledOut } from "./both-kinds.ts";
import { restrictController } from "./in-place-account.ts";

let environment: TestEnvironment;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  await restrictController(environment);
});
afterEach(() => environment.end());

const [{ deployment: first }, { deployment: second }] = CANARIES;

describe("a service with a Deployment of two pods and a StatefulSet of three", () => {
  it.each(CANARIES)(
    "keeps its pods with a larger and a smaller size, and its owner's partition 0, if its canary is the $canary",
    ({ deployment }) => expectBothResizedInPlace(environment, deployment, 0),
  );

  it("keeps its pods with a larger and a smaller size, and its owner's partition 2, if its canary is the StatefulSet", () =>
    expectBothResizedInPlace(environment, second, 2));

  it("is rolled out to a larger and a smaller size, and the Deployment as its canary first", () =>
    expectBothRolledOut(environment, first));

  it("is rolled out to a larger and a smaller size, and the StatefulSet as its canary first", () =>
    expectBothRolledOut(environment, second));
});
