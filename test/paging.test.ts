import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { configMaps } from "../src/kube/api/config-map.ts";
import type { Client } from "../src/kube/client/client.ts";
import { createPages } from "../src/kube/client/pages.ts";

/** Whoever follows the pages of a server or a driver does it by a bounded walk: `page-tokens.ts`, or `pages.ts` on it. */

const SRC = resolve(import.meta.dirname, "../src");
/** Where a page is asked for: a token of an answer goes into the next request. */
const FOLLOWS = /\bcontinue: (next|token)\b|\bstartingToken = /;
const BOUNDED = /from "[./a-z-]*\/(page-tokens|pages)\.ts"/;

function sources(): string[] {
  return (
    readdirSync(SRC, { recursive: true, encoding: "utf8" })
      // These two give pages out.
      .filter((path) => !path.startsWith("apiserver/") && !path.startsWith("driver/"))
      .filter((path) => path.endsWith(".ts") && !path.includes(".test.") && !path.includes("/gen/"))
      .map((path) => join(SRC, path))
  );
}

test("every loop over pages is bounded", () => {
  const followers = sources().filter((path) => FOLLOWS.test(readFileSync(path, "utf8")));
  const unbounded = followers.filter((path) => !BOUNDED.test(readFileSync(path, "utf8")));

  expect(unbounded.map((path) => relative(SRC, path))).toEqual([]);
  // The reflector, the provisioner, `get` and `why`, the attacher: the pattern still finds what it is meant for.
  expect(followers.length).toBeGreaterThanOrEqual(4);
});

test("pages of a server that never end are an error that names the list", async () => {
  let asked = 0;
  const client: Pick<Client, "list"> = {
    list: () => Promise.resolve({ metadata: { continue: String(++asked) }, items: [] }),
  };
  const walk = async () => {
    const follow = createPages(configMaps);
    for (let next: string | undefined; ;) {
      const page = await client.list(configMaps, { continue: next });
      next = follow(page.metadata.continue);
      if (next === undefined) return;
    }
  };

  await expect(walk()).rejects.toThrow(
    "BadResponse: list configmaps: the server's pages lead nowhere: it is not at its end after 10000 pages",
  );
  expect(asked).toBe(10_000);
});
