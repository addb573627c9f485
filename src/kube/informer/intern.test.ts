import { expect, test } from "vitest";
import { Interner } from "./intern.ts";

test("the text that comes out is the text that went in, and memory stays within the bound", () => {
  const interner = new Interner({ entriesMax: 5 });

  for (let index = 0; index < 1_000; index++) {
    const text = `node-${index % 37}`;
    expect(interner.text(text)).toBe(text);
    expect(interner.list([text])).toEqual([text]);
    expect(interner.size).toBeLessThanOrEqual(10);
  }
});

test("equal lists of one become one list; longer and empty ones are left alone", () => {
  const interner = new Interner({ entriesMax: 5 });
  const first = interner.list(["external-attacher/csi-example-com"]);
  const two = ["external-attacher/csi-example-com", "example.com/backup"];
  const none: string[] = [];

  expect(interner.list(["external-attacher/csi-example-com"])).toBe(first);
  expect(interner.list(two)).toBe(two);
  expect(interner.list(none)).toBe(none);
});
