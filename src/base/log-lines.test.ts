import { describe, expect, test } from "vitest";
import { createLogger } from "./log.ts";
import { createLineWriter } from "./log-lines.ts";
import { createPinoLogger } from "./pino-log.ts";
import { createSeededRandom } from "./seeded-random.ts";

/** A file or pipe that takes what it is told to take. */
class Target {
  text = "";
  paused = 0;
  /** How many bytes it takes before it fails with `code`; undefined: everything. */
  room: number | undefined;
  code = "ENOSPC";
  onPause: () => void = () => undefined;

  readonly write = (bytes: Uint8Array, start: number): number => {
    const left = bytes.length - start;
    if (this.room === 0) throw Object.assign(new Error(`${this.code}: write`), { code: this.code });
    const taken = Math.min(left, this.room ?? left);
    this.text += Buffer.from(bytes.subarray(start, start + taken)).toString();
    if (this.room !== undefined) this.room -= taken;
    return taken;
  };
  readonly pause = (): void => {
    this.paused++;
    this.onPause();
  };

  writer() {
    const describeLoss = ({ lines, code }: { lines: number; code: string }) => `lost ${lines} ${code}\n`;
    return createLineWriter({ write: this.write, pause: this.pause, describeLoss });
  }
}

describe("lines that cannot be written", () => {
  for (const code of ["ENOSPC", "EPIPE", "EIO", "EBADF", "EROFS", "EDQUOT"])
    test(`${code}: are lost, counted, and said once when writing works again`, () => {
      const target = new Target();
      const lines = target.writer();
      lines.write("a\n");
      Object.assign(target, { room: 0, code });

      for (const line of ["b\n", "c\n", "d\n"]) lines.write(line);
      target.room = undefined;
      lines.write("e\n");
      lines.write("f\n");

      expect(target.text).toBe(`a\nlost 3 ${code}\ne\nf\n`);
    });

  test("a reader that is behind for a moment loses nothing; one that has stopped costs one wait", () => {
    const target = new Target();
    const lines = target.writer();
    Object.assign(target, { room: 0, code: "EAGAIN" });
    target.onPause = () => {
      if (target.paused === 3) target.room = undefined;
    };
    lines.write("a\n");
    target.room = 0;

    lines.write("b\n");
    const afterOne = target.paused;
    for (let line = 0; line < 100; line++) lines.write("c\n");
    target.room = undefined;
    lines.write("d\n");

    expect(target.text).toBe("a\nlost 101 EAGAIN\nd\n");
    expect(target.paused).toBe(afterOne);
  });

  test("a reader that is slow all the time costs a millisecond a line at most, not one wait for each time it reads", () => {
    const target = new Target();
    const lines = target.writer();
    target.code = "EAGAIN";

    for (let reads = 0; reads < 200; reads++) {
      target.room = 60;
      for (let line = 0; line < 20; line++) lines.write("a line\n");
    }

    const written = target.text.split("\n").length;
    expect(target.paused).toBeGreaterThan(0);
    expect(target.paused).toBeLessThan(written + 60);
  });

  test("whatever fails after any byte: what is read back is whole lines, torn ones, and the exact count", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const random = createSeededRandom(seed);
      const target = new Target();
      const lines = target.writer();
      const count = 30;
      for (let line = 0; line < count; line++) {
        if (random.int(3) === 0) target.room = random.int(2) === 0 ? undefined : random.int(30);
        lines.write(`line ${line} ${"x".repeat(random.int(20))}.\n`);
      }
      target.room = undefined;
      lines.write("end.\n");

      const read = target.text.split("\n");
      const whole = read.filter((line) => /^line \d+ x*\.$/.test(line)).length;
      const said = read.map((line) => /^lost (\d+) ENOSPC$/.exec(line)?.[1]).filter((n) => n !== undefined);
      expect(whole + said.reduce((sum, n) => sum + Number(n), 0), `seed ${seed}`).toBe(count);
      expect(read.at(-2), `seed ${seed}`).toBe("end.");
    }
  });
});

describe("what is logged never throws into work", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const hostile = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error("no keys");
      },
    },
  );
  const STRANGE: readonly (readonly [string, unknown])[] = [
    ["a circle", circular],
    ["a getter that throws", { get boom(): never { throw new Error("boom"); } }], // prettier-ignore
    ["a toJSON that throws", { toJSON: () => { throw new Error("toJSON"); } }], // prettier-ignore
    ["a revoked proxy", proxy],
    ["a proxy that throws", hostile],
    ["an error whose message throws", Object.defineProperty(new Error("x"), "message", { get: () => { throw new Error("m"); } })], // prettier-ignore
    ["a date that is none", new Date(Number.NaN)],
    ["a bigint", 10n],
    ["a symbol", Symbol("s")],
    ["a function", () => 1],
    ["undefined", undefined],
    ["an object without a prototype", Object.create(null)],
    ["a map", new Map([[{}, 1n]])],
    ["a lone surrogate", "\ud800"],
    ["a thrown null", null],
  ];

  for (const [what, value] of STRANGE)
    test(`${what}: the line is written, with its message and its other fields`, () => {
      const written: string[] = [];
      const log = createPinoLogger({ destination: { write: (line) => void written.push(line) } });

      log.with({ component: "x" }).error("it failed", { value, volume: "pvc-7f" });

      expect(written).toHaveLength(1);
      expect(JSON.parse(written[0] ?? "")).toMatchObject({
        message: "it failed",
        component: "x",
        volume: "pvc-7f",
      });
    });

  test("a destination that throws costs the line", () => {
    const log = createLogger(() => {
      throw new Error("ENOSPC");
    });

    expect(() => log.with({ a: 1 }).info("working")).not.toThrow();
  });
});
