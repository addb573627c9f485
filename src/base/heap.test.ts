import { expect, test } from "vitest";
import { KeyedHeap } from "./heap.ts";
import { createSeededRandom } from "./seeded-random.ts";

test("entries come out smallest first, equals in the order they went in", () => {
  const heap = new KeyedHeap<string>();
  for (const [key, priority] of [
    ["late", 3],
    ["first", 1],
    ["second", 1],
    ["third", 1],
  ] as const) {
    heap.set(key, priority, undefined);
  }

  const order = [heap.pop()?.key, heap.pop()?.key, heap.pop()?.key, heap.pop()?.key, heap.pop()?.key];

  expect(order).toEqual(["first", "second", "third", "late", undefined]);
});

test("a key that changes its priority moves, and queues behind its new equals", () => {
  const heap = new KeyedHeap<string, number>();
  heap.set("a", 5, 1);
  heap.set("b", 1, 2);

  heap.set("a", 1, 3);

  expect(heap.size).toBe(2);
  expect(heap.pop()).toMatchObject({ key: "b", value: 2 });
  expect(heap.pop()).toMatchObject({ key: "a", value: 3 });
});

test("against a sorted list: any mix of set, delete and pop agrees", () => {
  const random = createSeededRandom(7);
  const heap = new KeyedHeap<number>();
  let model: { key: number; priority: number; sequence: number }[] = [];

  for (let sequence = 0; sequence < 5_000; sequence++) {
    const key = random.int(60);
    switch (random.int(4)) {
      case 0: {
        const popped = heap.pop()?.key;
        model.sort((a, b) => a.priority - b.priority || a.sequence - b.sequence);
        expect(popped).toBe(model.shift()?.key);
        break;
      }
      case 1:
        expect(heap.delete(key) !== undefined).toBe(model.some((entry) => entry.key === key));
        model = model.filter((entry) => entry.key !== key);
        break;
      default: {
        const priority = random.int(20);
        heap.set(key, priority, undefined);
        model = [...model.filter((entry) => entry.key !== key), { key, priority, sequence }];
      }
    }
    expect(heap.size).toBe(model.length);
  }
});
