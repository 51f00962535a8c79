/** Says something after all that vitest has to say. */
export function setup(): void {
  process.on("exit", () => console.log("and at exit, too"));
}

export function teardown(): void {
  console.log("the teardown has the word");
}
