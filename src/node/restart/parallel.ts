/**
 * Files looked at together after a start: 500 pods in a fraction of a second, without 500 open directories. Two of these
 * run at a time, and one child of the host takes 16 looks: the start of a second would cost more than it saves.
 */
const PARALLEL = 8;

export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, items.length) }, worker));
}
