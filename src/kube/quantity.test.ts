import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isKubeError } from "./errors.ts";
import vectors from "./fixtures/canonical-vectors.json" with { type: "json" };
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  quantityFromBytes,
  quantityToBytes,
  roundUpToMilli,
  subtractQuantities,
  type Quantity,
} from "./quantity.ts";

interface Vector {
  readonly in: string;
  readonly out?: string;
  readonly error?: string;
  readonly value: number;
  readonly roundedUpToMilli?: string;
}

/** The real library gives some texts back as they were typed; we write what it would have computed. */
const ODD_SPELLINGS = new Map([
  ["+5", "5"],
  ["1E3", "1e3"],
  ["1.610612736e9", "1610612736"],
  ["5.", "5"],
  ["1.", "1"],
  ["00012", "12"],
  ["123456789.123456789", "123456789123456789n"],
]);

describe("the vectors of the real library", () => {
  for (const vector of vectors.quantities as readonly Vector[]) {
    if (vector.error !== undefined) {
      test(`"${vector.in}" is refused for the same reason`, () => {
        expect(() => parseQuantity(vector.in)).toThrow(`BadInput: quantity "${vector.in}": ${vector.error}`);
      });
      continue;
    }
    const out = ODD_SPELLINGS.get(vector.in) ?? vector.out ?? "";
    test(`"${vector.in}" is written "${out}"`, () => {
      const quantity = parseQuantity(vector.in);

      expect(formatQuantity(quantity)).toBe(out);
      expect(formatQuantity(roundUpToMilli(quantity))).toBe(vector.roundedUpToMilli ?? out);
      // A JSON number holds no full int64: those are checked below.
      if (Number.isSafeInteger(vector.value)) expect(quantityToBytes(quantity)).toBe(BigInt(vector.value));
    });
  }

  test("only the odd spellings differ from the recorded text", () => {
    const differing = (vectors.quantities as readonly Vector[]).filter(
      (vector) => vector.error === undefined && formatQuantity(parseQuantity(vector.in)) !== vector.out,
    );

    expect(differing.map((vector) => vector.in)).toEqual([...ODD_SPELLINGS.keys()]);
  });
});

describe("whole numbers beyond what a float holds", () => {
  for (const [text, bytes] of [
    ["9007199254740993", 9_007_199_254_740_993n],
    ["1Ei", 1_152_921_504_606_846_976n],
    ["10Ei", 9_223_372_036_854_775_807n], // binary quantities are capped
    ["-10Ei", -9_223_372_036_854_775_807n],
    ["9223372036854775808", 9_223_372_036_854_775_808n], // decimal ones are not; Go's int64 overflows here
    ["-1.5", -2n], // away from zero
  ] as const) {
    test(`${text} is ${bytes} bytes`, () => {
      expect(quantityToBytes(parseQuantity(text))).toBe(bytes);
    });
  }
});

test("a JSON number is a quantity too", () => {
  expect(formatQuantity(parseQuantity(5))).toBe("5");
  expect(formatQuantity(parseQuantity(0.5))).toBe("500m");
  expect(formatQuantity(parseQuantity(1e21))).toBe("1e21");
  expect(() => parseQuantity(NaN)).toThrow('quantity "NaN"');
});

test("bytes are written with the largest suffix that loses nothing", () => {
  expect(formatQuantity(quantityFromBytes(10n * 1024n ** 3n, "BinarySI"))).toBe("10Gi");
  expect(formatQuantity(quantityFromBytes(1024n ** 3n + 1n, "BinarySI"))).toBe("1073741825");
  expect(formatQuantity(quantityFromBytes(10n ** 12n, "DecimalSI"))).toBe("1T");
  expect(formatQuantity(quantityFromBytes(10n ** 24n, "DecimalSI"))).toBe("1000000E");
});

test("a sum keeps the format of its first term, unless that is zero", () => {
  const [mebi, mega, zero] = [parseQuantity("512Mi"), parseQuantity("1M"), parseQuantity("0")];

  expect(formatQuantity(addQuantities(mebi, mebi))).toBe("1Gi");
  expect(formatQuantity(addQuantities(mega, parseQuantity("1Ki")))).toBe("1001024");
  expect(formatQuantity(addQuantities(zero, mebi))).toBe("512Mi");
  expect(formatQuantity(subtractQuantities(mebi, mebi))).toBe("0");
  expect(formatQuantity(subtractQuantities(zero, mebi))).toBe("-512Mi");
});

describe("texts that ask for absurd numbers are refused before anything is computed", () => {
  for (const text of [
    "1e999999999",
    "1e-999999999",
    "1e129",
    "9e100",
    "1".repeat(129),
    "1e99999999999999999999",
  ]) {
    test(text.slice(0, 24), () => {
      let error: unknown;
      try {
        parseQuantity(text);
      } catch (thrown) {
        error = thrown;
      }

      expect(isKubeError(error, "BadInput")).toBe(true);
    });
  }

  test("and the largest and smallest allowed are not", () => {
    expect(formatQuantity(parseQuantity("9e99"))).toBe("9e99");
    expect(formatQuantity(parseQuantity("1e-128"))).toBe("1e-9");
  });
});

describe("for all quantities", () => {
  const nanos = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n });
  const wide = fc.oneof(
    nanos,
    fc
      .tuple(fc.bigInt({ min: -9999n, max: 9999n }), fc.nat({ max: 40 }))
      .map(([m, e]) => m * 10n ** BigInt(e)),
    fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }).map((units) => units * 10n ** 9n),
  );
  const decimal: fc.Arbitrary<Quantity> = fc.record({
    nanos: wide,
    format: fc.constantFrom("DecimalSI" as const, "DecimalExponent" as const),
  });
  const binary = fc
    .bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n })
    .map((units) => quantityFromBytes(units, "BinarySI"));

  test("what is written reads as the same amount", () => {
    fc.assert(
      fc.property(fc.oneof(decimal, binary), (quantity) => {
        expect(parseQuantity(formatQuantity(quantity)).nanos).toBe(quantity.nanos);
      }),
      { numRuns: 1_000 },
    );
  });

  test("writing is canonical: a second round changes nothing", () => {
    fc.assert(
      fc.property(fc.oneof(decimal, binary), (quantity) => {
        const text = formatQuantity(quantity);
        // A binary amount that no binary suffix divides is written plainly, and read back as a decimal one.
        fc.pre(quantity.format !== "BinarySI" || text.endsWith("i"));

        expect(formatQuantity(parseQuantity(text))).toBe(text);
      }),
      { numRuns: 1_000 },
    );
  });

  test("order is that of the rationals they stand for", () => {
    const suffixes = [
      ["", 1n, 1n],
      ["m", 1n, 1_000n],
      ["u", 1n, 1_000_000n],
      ["k", 1_000n, 1n],
      ["Ki", 1_024n, 1n],
      ["Mi", 1_048_576n, 1n],
      ["e3", 1_000n, 1n],
    ] as const;
    const written = fc.tuple(fc.bigInt({ min: -5_000n, max: 5_000n }), fc.constantFrom(...suffixes));
    fc.assert(
      fc.property(written, written, ([a, [aSuffix, aUp, aDown]], [b, [bSuffix, bUp, bDown]]) => {
        const difference = a * aUp * bDown - b * bUp * aDown;
        const sign = difference === 0n ? 0 : difference < 0n ? -1 : 1;

        expect(compareQuantities(parseQuantity(`${a}${aSuffix}`), parseQuantity(`${b}${bSuffix}`))).toBe(
          sign,
        );
      }),
      { numRuns: 1_000 },
    );
  });
});
