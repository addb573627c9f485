import { expect, test } from "vitest";
import { createGate } from "./gate.ts";

/** Work that ends when the test says so. */
function held() {
  let end = (): void => undefined;
  const done = new Promise<void>((resolve) => (end = resolve));
  return { work: () => done, end: () => end() };
}

test("so many work at a time, and the next begins when one ends, in the order they came", async () => {
  const gate = createGate(2);
  const { signal } = new AbortController();
  const began: number[] = [];
  const works = [held(), held(), held(), held()];
  const ends = works.map(({ work }, index) =>
    gate(signal, () => {
      began.push(index);
      return work();
    }),
  );
  await Promise.resolve();
  expect(began).toEqual([0, 1]);

  works[1]?.end();
  await ends[1];
  expect(began).toEqual([0, 1, 2]);

  for (const { end } of works) end();
  await Promise.all(ends);
  expect(began).toEqual([0, 1, 2, 3]);
});

test("who gives up while waiting leaves the line, and takes nobody's place", async () => {
  const gate = createGate(1);
  const first = held();
  const giveUp = new AbortController();
  const one = gate(new AbortController().signal, first.work);
  const two = gate(giveUp.signal, () => Promise.reject(new Error("must not begin")));
  const three = gate(new AbortController().signal, () => Promise.resolve("its turn"));

  giveUp.abort(new Error("no longer wanted"));
  await expect(two).rejects.toThrow("no longer wanted");
  first.end();

  await one;
  expect(await three).toBe("its turn");
});

test("work that fails gives its place back", async () => {
  const gate = createGate(1);
  const { signal } = new AbortController();

  await expect(gate(signal, () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");

  expect(await gate(signal, () => Promise.resolve(1))).toBe(1);
});
