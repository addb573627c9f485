import { describe, expect, test } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { aborted } from "../shutdown.ts";
import { createParts } from "./parts.ts";

describe("the parts of a process", () => {
  test("end in reverse, each after what was started later", async () => {
    const parts = createParts(silentLogger);
    const ended: string[] = [];
    const run = (name: string) =>
      parts.run(name, async (signal) => {
        await aborted(signal);
        ended.push(name);
      });
    run("first");
    parts.atEnd("second", async () => void ended.push("second"));
    run("third");

    await parts.stop();

    expect(ended).toEqual(["third", "second", "first"]);
    expect(parts.failed.aborted).toBe(false);
  });

  test("one that fails is named, and the others still end", async () => {
    const parts = createParts(silentLogger);
    let ended = false;
    parts.run("good", async (signal) => {
      await aborted(signal);
      ended = true;
    });
    parts.run("bad", async () => {
      throw new Error("out of luck");
    });
    await aborted(parts.failed);

    await parts.stop();

    expect((parts.failed.reason as Error).message).toBe("bad failed: out of luck");
    expect(ended).toBe(true);
  });

  test("one that ends by itself has failed too", async () => {
    const parts = createParts(silentLogger);
    parts.run("lazy", () => Promise.resolve());

    await aborted(parts.failed);

    expect((parts.failed.reason as Error).message).toBe("lazy ended by itself");
  });

  test("an end that goes wrong keeps nothing else from ending", async () => {
    const parts = createParts(silentLogger);
    const ended: string[] = [];
    parts.atEnd("first", async () => void ended.push("first"));
    parts.atEnd("second", () => Promise.reject(new Error("busy")));

    await parts.stop();

    expect(ended).toEqual(["first"]);
  });
});
