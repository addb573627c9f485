import { Command, CommanderError } from "commander";
import { describe, expect, test } from "vitest";
import { durationOption, formatDuration, parseDuration } from "./durations.ts";

describe("a duration of Go, in milliseconds", () => {
  for (const [text, ms] of [
    ["1m0s", 60_000],
    ["300ms", 300],
    ["1h", 3_600_000],
    ["1h2m3.5s", 3_723_500],
    ["1.5h", 5_400_000],
    [".5s", 500],
    ["1.s", 1_000],
    ["+15s", 15_000],
    ["-15s", -15_000],
    ["0", 0],
    ["0s", 0],
    ["100us", 0.1],
    ["100\u00b5s", 0.1],
    ["100\u03bcs", 0.1],
    ["1000000ns", 1],
    ["1s1s", 2_000],
    // What Go refuses too.
    ["", undefined],
    ["15", undefined],
    ["s", undefined],
    [".s", undefined],
    ["1d", undefined],
    ["1 s", undefined],
    ["1S", undefined],
    ["1.2.3s", undefined],
    ["--1s", undefined],
    ["1e3s", undefined],
    ["9999999999h", undefined], // above 2^63 ns
  ] as const) {
    test(JSON.stringify(text), () => {
      const parsed = parseDuration(text);

      if (ms === undefined) expect(parsed).toBeUndefined();
      else expect(parsed).toBeCloseTo(ms, 9);
    });
  }

  test("is printed as Go prints it, and read back as the same", () => {
    for (const [ms, text] of [
      [0, "0s"],
      [300, "300ms"],
      [1_500, "1.5s"],
      [60_000, "1m0s"],
      [90_000, "1m30s"],
      [3_600_000, "1h0m0s"],
      [-15_000, "-15s"],
    ] as const) {
      expect(formatDuration(ms)).toBe(text);
      expect(parseDuration(text)).toBe(ms);
    }
  });
});

describe("a flag with a duration", () => {
  const parse = (...args: string[]) => {
    const printed: string[] = [];
    const command = new Command("x")
      .exitOverride()
      .configureOutput({ writeErr: (text) => void printed.push(text) })
      .addOption(
        durationOption("period", "how often", { defaultMs: 60_000, minMs: 1_000, why: "less is too often" }),
      );
    try {
      command.parse(args, { from: "user" });
    } catch (error) {
      if (error instanceof CommanderError) return printed.join("");
      throw error;
    }
    return command.opts<{ period: number }>().period;
  };

  test("gives milliseconds, or its default", () => {
    expect(parse()).toBe(60_000);
    expect(parse("--period", "1s")).toBe(1_000);
    expect(parse("--period=1m30s")).toBe(90_000);
  });

  test("says what is wrong: no duration, or too short and why", () => {
    expect(parse("--period", "60")).toMatch(/--period <duration>.*'60' is invalid\. Give a duration such as/);
    expect(parse("--period", "999ms")).toMatch(
      /'999ms' is invalid\. It must be at least 1s: less is too often\./,
    );
  });
});
