import { expect, test } from "vitest";
import { together } from "./together.ts";

function givenWork() {
  const rounds: { readonly answer: (value: number) => void; readonly fail: (error: Error) => void }[] = [];
  const ask = together(() => new Promise<number>((answer, fail) => void rounds.push({ answer, fail })));
  return { rounds, ask };
}

const idle = () => new Promise<void>((resolve) => setImmediate(resolve));

test("a hundred who ask at once cost two rounds, and none gets an answer that began before it asked", async () => {
  const { rounds, ask } = givenWork();
  const answers = Array.from({ length: 100 }, () => ask());
  expect(rounds).toHaveLength(1);

  rounds[0]?.answer(1);
  await idle();
  const late = ask();
  expect(rounds).toHaveLength(2);
  rounds[1]?.answer(2);
  await idle();
  rounds[2]?.answer(3);

  expect(await Promise.all(answers)).toEqual([1, ...Array.from({ length: 99 }, () => 2)]);
  expect(await late).toBe(3);
  expect(rounds).toHaveLength(3);
});

test("a round that fails is the failure of those who shared it, and the next is a new one", async () => {
  const { rounds, ask } = givenWork();
  const first = ask();
  const second = ask();

  rounds[0]?.fail(new Error("no table"));
  await expect(first).rejects.toThrow("no table");
  rounds[1]?.answer(2);

  expect(await second).toBe(2);
});
