import { describe, expect, test } from "vitest";
import { shutdownSignal } from "./shutdown.ts";

type Name = "SIGINT" | "SIGTERM" | "SIGHUP";

/** `[when it comes, which signal]`, in order; answers what came of it. */
function given(signals: readonly (readonly [number, Name])[]) {
  const listeners = new Map<Name, () => void>();
  let [nowMs, exitedAtMs] = [0, -1];
  const signal = shutdownSignal({
    on: (name, listener) => listeners.set(name, listener),
    exit: () => (exitedAtMs = exitedAtMs < 0 ? nowMs : exitedAtMs),
    now: () => nowMs,
  });
  for (const [atMs, name] of signals) {
    nowMs = atMs;
    listeners.get(name)?.();
  }
  return { reason: (signal.reason as Error | undefined)?.message, exitedAtMs };
}

describe("a request to end", () => {
  const ROWS: readonly (readonly [string, readonly (readonly [number, Name])[], string, number])[] = [
    ["Ctrl-C", [[5, "SIGINT"]], "SIGINT", -1],
    ["a closed terminal", [[5, "SIGHUP"]], "SIGHUP", -1],
    [
      "the echo of npm",
      [
        [5, "SIGTERM"],
        [6, "SIGTERM"],
        [40, "SIGTERM"],
      ],
      "SIGTERM",
      -1,
    ],
    [
      "a supervisor that repeats itself",
      [
        [5, "SIGTERM"],
        [5_000, "SIGTERM"],
        [9_000, "SIGHUP"],
      ],
      "SIGTERM",
      -1,
    ],
    [
      "the echo of a Ctrl-C",
      [
        [5, "SIGINT"],
        [1_005, "SIGINT"],
      ],
      "SIGINT",
      -1,
    ],
    [
      "a second Ctrl-C",
      [
        [5, "SIGINT"],
        [1_006, "SIGINT"],
      ],
      "SIGINT",
      1_006,
    ],
    [
      "Ctrl-C after a SIGTERM that takes long",
      [
        [5, "SIGTERM"],
        [8_000, "SIGINT"],
      ],
      "SIGTERM",
      8_000,
    ],
  ];
  for (const [name, signals, reason, exitedAtMs] of ROWS)
    test(`${name}: ${exitedAtMs < 0 ? "ends in order" : "ends at once"}`, () => {
      expect(given(signals)).toEqual({ reason, exitedAtMs });
    });
});
