/** Does the work for each item, a bounded number of them at a time, in their order. */
export async function inParallel<T>(
  concurrency: number,
  items: Iterable<T>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  // One iterator for all: each takes what is next.
  const next = items[Symbol.iterator]();
  const worker = async () => {
    for (let item = next.next(); !item.done; item = next.next()) await work(item.value);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}
