import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formsOf, KnownSecrets, scrubSecrets, STRIPPED, wellFormed } from "./known-secrets.ts";

/** The ways in which texts of drivers and their backends have been seen to carry a value. */
const ENCODINGS: Readonly<Record<string, (value: string) => string>> = {
  "as it is": (value) => value,
  base64: (value) => Buffer.from(value).toString("base64"),
  "base64 for URLs": (value) => Buffer.from(value).toString("base64url"),
  "a Basic header": (value) => Buffer.from(`user:${value}`).toString("base64"),
  "longer base64": (value) => Buffer.from(`{"password":"${value}","x":1}`).toString("base64"),
  hex: (value) => Buffer.from(value).toString("hex"),
  HEX: (value) => Buffer.from(value).toString("hex").toUpperCase(),
  "percent-encoded": (value) => encodeURIComponent(wellFormed(value)),
  "a form": (value) => encodeURIComponent(wellFormed(value)).replaceAll("%20", "+"),
  JSON: (value) => JSON.stringify(value).slice(1, -1),
  "JSON in JSON": (value) => JSON.stringify(JSON.stringify(value).slice(1, -1)).slice(1, -1),
};

const value = fc
  .oneof(
    fc.string({ minLength: 4, maxLength: 40, unit: "grapheme" }),
    fc.string({ minLength: 4, maxLength: 40, unit: "binary" }),
    fc.stringMatching(/^[.*+?^${}()|[\]\\"'<>&%/=]{4,12}$/),
    fc.base64String({ minLength: 12, maxLength: 60 }),
    fc
      .array(fc.stringMatching(/^[a-z0-9]{8,20}$/), { minLength: 2, maxLength: 4 })
      .map((lines) => lines.join("\n")),
  )
  .map(wellFormed)
  .filter((text) => text.trim().length >= 4);

/** Within a longer base64 a short value may stand by chance, and is not looked for. */
function leaks(text: string, secret: string, encoding: string): boolean {
  const within = encoding === "a Basic header" || encoding === "longer base64";
  if (within && Buffer.from(secret).length < 8) return false;
  return text.includes(secret) || text.includes(ENCODINGS[encoding]?.(secret) ?? "");
}

describe("secrets that are known", () => {
  test("no value is left in a text, in any encoding, beside and over any other", () => {
    let cases = 0;
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 5 }),
        fc.array(fc.tuple(fc.nat(4), fc.constantFrom(...Object.keys(ENCODINGS)), fc.string()), {
          maxLength: 6,
        }),
        (secrets, pieces) => {
          const known = new KnownSecrets();
          known.learn(secrets);
          const used = pieces.map(([at, encoding, filler]) => ({
            secret: secrets[at % secrets.length] ?? "",
            encoding,
            filler,
          }));
          const text = used
            .map(({ secret, encoding, filler }) => filler + (ENCODINGS[encoding]?.(secret) ?? ""))
            .join("");

          const [scrubbed, deep] = [
            known.scrub(text),
            JSON.stringify(known.scrubDeep({ a: [{ [text]: text }] })),
          ];
          for (const { secret, encoding } of used) {
            cases++;
            const rest = scrubbed.replaceAll(STRIPPED, "\u0000");
            expect(leaks(rest, secret, encoding), `${encoding} of ${JSON.stringify(secret)}`).toBe(false);
            expect(deep.includes(JSON.stringify(secret).slice(1, -1)) && !STRIPPED.includes(secret)).toBe(
              false,
            );
          }
        },
      ),
      { numRuns: 400, seed: Number(process.env["MOORING_SEED"] ?? 1) },
    );
    expect(cases).toBeGreaterThan(800);
  });

  test("a text without any of them stays as it is", () => {
    fc.assert(
      fc.property(
        fc.array(value, { maxLength: 5 }),
        fc.string({ maxLength: 200, unit: "grapheme" }),
        (secrets, text) => {
          fc.pre(!secrets.some((secret) => formsOf(secret).some((form) => text.includes(form))));

          expect(scrubSecrets(text, secrets)).toBe(text);
        },
      ),
      { numRuns: 300, seed: Number(process.env["MOORING_SEED"] ?? 1) },
    );
  });

  for (const [claim, text, values, expected] of [
    ["two that overlap are cut out whole", "xabcdefghiy", ["abcdef", "defghi"], `x${STRIPPED}y`],
    [
      "one that is part of our own mark",
      `a ${STRIPPED} stripped`,
      ["stripped"],
      `a ***${STRIPPED}*** ${STRIPPED}`,
    ],
    ["three letters are a word", "set it to off", ["off"], "set it to off"],
    [
      "each line of a key alone",
      "bad line MIIEvgIBADAN",
      ["-----BEGIN\nMIIEvgIBADAN\n"],
      `bad line ${STRIPPED}`,
    ],
  ] as const)
    test(claim, () => expect(scrubSecrets(text, values)).toBe(expected));

  test("the values used last are remembered, and no more than those", () => {
    const known = new KnownSecrets({ valuesMax: 2 });

    known.learn(["first-value", "second-value"]);
    known.learn(["first-value"]);
    known.learn(["third-value"]);

    expect(known.scrub("first-value second-value third-value")).toBe(`${STRIPPED} second-value ${STRIPPED}`);
  });

  test("nor more characters than are allowed, but always the value used last", () => {
    const known = new KnownSecrets({ charsMax: 30 });

    known.learn(["first-value", "second-value", "third-value"]);
    expect(known.scrub("first-value second-value")).toBe(`first-value ${STRIPPED}`);
    known.learn(["x".repeat(40)]);

    expect(known.scrub(`second-value ${"x".repeat(40)}`)).toBe(`second-value ${STRIPPED}`);
    known.learn(["y".repeat(20)]);
    expect(known.scrub("y".repeat(20))).toBe(STRIPPED);
  });
});
