import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { KubeError } from "../kube/errors.ts";
import { fetchSecret, SecretValues } from "./secrets.ts";

describe("a secret", () => {
  const secret = new SecretValues({ user: "ab", key: "s3cr3t-value", lines: "first line\nsecond line\n" });

  test("shows nothing, however it is printed", () => {
    const printed = [
      JSON.stringify({ secret }),
      inspect(secret, { depth: 9, showHidden: true }),
      String(secret),
    ].join();

    expect(printed).not.toMatch(/s3cr3t|first line/);
    expect(printed).toContain("***stripped***");
  });

  for (const [text, scrubbed] of [
    ["login s3cr3t-value failed", "login ***stripped*** failed"],
    [`login ${Buffer.from("s3cr3t-value").toString("base64")}`, "login ***stripped***"],
    ["found second line in it", "found ***stripped*** in it"],
    ["user ab is about", "user ***stripped*** is about"], // a short value only where it stands alone
    ["nothing of ours", "nothing of ours"],
  ] as const) {
    test(`is cut out of "${text}"`, () => expect(secret.scrub(text)).toBe(scrubbed));
  }

  test("that contains another is cut out as a whole", () => {
    expect(new SecretValues({ a: "pass", b: "password-long" }).scrub("x password-long y")).toBe(
      "x ***stripped*** y",
    );
  });
});

test("an answer that could not be read is not quoted: it may be the secret", async () => {
  const client = {
    get: () => Promise.reject(new KubeError("BadResponse", "get secret: s3cr3t is not JSON")),
  };
  const signal = new AbortController().signal;

  const failure = fetchSecret(client, { namespace: "ns", name: "s" }, { purpose: "a test", signal });

  await expect(failure).rejects.toThrow("get secret ns/s for a test: BadResponse; it is tried again");
  await expect(failure).rejects.not.toHaveProperty("cause");
});
