import { expect, test } from "vitest";
import { PageTokens } from "./page-tokens.ts";

const nowhere = (why: string) => new Error(why);

test("a list that ends is read to its end", () => {
  const tokens = new PageTokens();

  expect(tokens.follow("a", nowhere)).toBe("a");
  expect(tokens.follow("b", nowhere)).toBe("b");
  expect(tokens.follow("", nowhere)).toBeUndefined();
  expect(tokens.follow(undefined, nowhere)).toBeUndefined();
});

for (const period of [1, 2, 7])
  test(`a circle of ${period} pages is left after one round`, () => {
    const tokens = new PageTokens();
    let pages = 0;
    const walk = () => {
      for (;;) tokens.follow(`page ${pages++ % period}`, nowhere);
    };

    expect(walk).toThrow(/same next page twice/);
    expect(pages).toBe(period + 1);
  });

test("tokens that never end are", () => {
  const tokens = new PageTokens({ pagesMax: 100 });
  let pages = 0;
  const walk = () => {
    for (;;) tokens.follow(`page ${pages++}`, nowhere);
  };

  expect(walk).toThrow("it is not at its end after 100 pages");
  expect(pages).toBe(100);
});
