/** Runs the work for each item in order, a bounded number concurrently. */
export async function inParallel<T>(
  concurrency: number,
  items: Iterable<T>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  // The workers share one iterator; each takes the next item.
  const next = items[Symbol.iterator]();
  const worker = async () => {
    for (let item = next.next(); !item.done; item = next.next()) await work(item.value);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}
