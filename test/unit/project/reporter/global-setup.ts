/** Prints text after the output of vitest. */
export function setup(): void {
  process.on("exit", () => console.log("printed at exit"));
}

export function teardown(): void {
  console.log("printed by the teardown");
}
