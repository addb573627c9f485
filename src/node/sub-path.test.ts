import fc from "fast-check";
import { expect, test } from "vitest";
import { createSubPathWalk } from "./sub-path.ts";

/** Walks with every entry of `links` being a link; answers with where it ends. */
function walkTo(subPath: string, links: Readonly<Record<string, string>> = {}): string {
  const walk = createSubPathWalk(subPath);
  const trail: string[] = [];
  for (let step = walk.next(); step !== undefined; step = walk.next()) {
    if (step.kind === "back") trail.pop();
    else {
      const target = links[[...trail, step.name].join("/")];
      if (target === undefined) trail.push(step.name);
      else walk.link(target);
    }
  }
  return trail.join("/");
}

test("plain steps are walked as they are, empty ones and dots left out", () => {
  expect(walkTo("a//b/./c/")).toBe("a/b/c");
  expect(walkTo("")).toBe("");
});

test("links that stay inside are followed from where they lie", () => {
  expect(walkTo("a/link/f", { "a/link": "../b" })).toBe("b/f");
  expect(walkTo("l", { l: "m", m: "n/.." })).toBe("");
});

test("whatever leads out is refused", () => {
  for (const path of ["/a", "..", "a/..", "a\0b"]) expect(() => walkTo(path)).toThrow(/must be relative/);
  expect(() => walkTo("a/l", { "a/l": "../.." })).toThrow(/leads out/);
  expect(() => walkTo("l", { l: "/etc" })).toThrow(/link to \/etc/);
  expect(() => walkTo("l", { l: "l" })).toThrow(/loop/);
});

test("no choice of steps and links ever goes above the root", () => {
  const name = fc.constantFrom("a", "b", "..", ".", "");
  const path = fc.array(name, { maxLength: 6 }).map((steps) => steps.join("/"));
  fc.assert(
    fc.property(path, fc.dictionary(fc.constantFrom("a", "b", "a/b", "b/a"), path), (subPath, links) => {
      const walk = createSubPathWalk(subPath.replaceAll("..", "a").replace(/^\/+/, ""));
      const trail: string[] = [];
      try {
        for (let step = walk.next(); step !== undefined; step = walk.next()) {
          if (step.kind === "back") expect(trail.pop()).toBeDefined();
          else {
            const target = links[[...trail, step.name].join("/")];
            if (target === undefined) trail.push(step.name);
            else walk.link(target);
          }
        }
      } catch (error) {
        expect(error).toMatchObject({ code: "Outside" });
      }
    }),
  );
});
