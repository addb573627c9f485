import { describe, expect, test } from "vitest";
import { CelError, describeAt } from "./errors.ts";
import { Functions } from "./functions.ts";
import { fromJson, toJson } from "./json.ts";
import { ADDRESSES } from "./library/addresses.ts";
import { STANDARD } from "./library/standard.ts";
import { URLS } from "./library/urls.ts";
import { Budget, compile } from "./program.ts";
import { DYN } from "./types.ts";

const environment = {
  variables: new Map([["object", DYN]]),
  functions: new Functions(STANDARD, ADDRESSES, URLS),
};

function run(source: string, object: unknown = {}, steps = 100_000): unknown {
  return toJson(
    compile(source, environment).evaluate(
      (name) => (name === "object" ? fromJson(object) : undefined),
      new Budget(steps),
    ),
  );
}

function failure(work: () => unknown): CelError {
  try {
    work();
  } catch (error) {
    if (error instanceof CelError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

describe("objects of the API", () => {
  test("whole numbers are ints, and only what an object itself has is there", () => {
    const object = { spec: { replicas: 3, ratio: 0.5 }, big: 9007199254740993n, none: null };

    expect(run("type(object.spec.replicas) == int && type(object.spec.ratio) == double", object)).toBe(true);
    expect(run("object.big + 1", object)).toBe(9007199254740994n);
    expect(run("has(object.none) && object.none == null", object)).toBe(true);
    expect(run("has(object.constructor) || has(object.__proto__)", object)).toBe(false);
    expect(failure(() => run("object.spec.foo > 1", object)).message).toBe("no such key: foo");
  });

  test("what may be absent is asked for with a question mark", () => {
    expect(run("object.?spec.?replicas.orValue(1)")).toBe(1);
    expect(run("object[?'spec'].hasValue()")).toBe(false);
    expect(run("[?object.?a, 2]", { a: 1 })).toEqual([1, 2]);
    expect(run("object.?a.optMap(x, x + 1)", { a: 1 })).toBe(2);
  });
});

describe("what is wrong is said with its place", () => {
  for (const [source, code, text] of [
    ["object.a ==", "Syntax", "1:12: Syntax error: mismatched input '<EOF>'"],
    ["object.a\n  && objct", "Check", "2:6: undeclared reference to 'objct' (in container '')"],
    ["'a' + 1", "Check", "1:5: found no matching overload for '_+_' applied to '(string, int)'"],
    ["'\\q'", "Syntax", "1:2: Syntax error: invalid escape sequence"],
    ["object.a.foo()", "Check", "1:13: undeclared reference to 'foo' (in container '')"],
    ["for == 1", "Syntax", "1:1: Syntax error: reserved identifier: for"],
  ] as const) {
    test(source, () => {
      const error = failure(() => compile(source, environment));

      expect(error.code).toBe(code);
      expect(describeAt(source, error).split("\n")[0]).toContain(`ERROR: <input>:${text}`);
    });
  }
});

describe("nobody keeps the server busy", () => {
  const list = Array.from({ length: 1_000 }, (_, index) => index);

  test("work ends with its budget, whatever swallows errors", () => {
    const loop = "object.all(a, object.all(b, object.all(c, a + b + c >= 0)))";

    expect(failure(() => run(loop, list)).code).toBe("Budget");
    expect(failure(() => run(`${loop} || true`, list)).code).toBe("Budget");
  });

  test("texts that double pay for their length", () => {
    const doubled = Array.from({ length: 40 }, () => ".map(x, x + x)").join("");

    expect(failure(() => run(`[object]${doubled}`, "x".repeat(1_000))).code).toBe("Budget");
    expect(failure(() => run("object.replace('', object)", "x".repeat(100_000))).code).toBe("Budget");
    expect(failure(() => run("lists.range(1000000000)")).code).toBe("Budget");
  });

  test("errors that are swallowed cost more than answers", () => {
    expect(run("object.exists(x, x == 999)", list, 20_000)).toBe(true);
    expect(failure(() => run("object.exists(x, x.foo == 1)", list, 20_000)).code).toBe("Budget");
  });

  test("nesting has an end: in brackets, in signs, in chains", () => {
    for (const source of [
      `${"(".repeat(300)}1${")".repeat(300)}`,
      `${"!".repeat(300)}true`,
      `${"[".repeat(300)}${"]".repeat(300)}`,
      `1${"+1".repeat(300)}`,
      `object${".a".repeat(300)}`,
    ]) {
      expect(failure(() => compile(source, environment)).message).toContain("recursion limit exceeded");
    }
    expect(run(Array.from({ length: 2_000 }, () => "true").join(" && "))).toBe(true);
  });
});

test("a literal of several types is refused where Kubernetes does", () => {
  const strict = { ...environment, homogeneousLiterals: true };

  expect(failure(() => compile("[1, 'a']", strict)).message).toBe("expected type 'int' but found 'string'");
  expect(compile("[1, object.a]", strict).source).toBe("[1, object.a]");
});

describe("libraries of Kubernetes", () => {
  for (const source of [
    "ip('192.168.0.1').family() == 4 && ip('::1').family() == 6",
    "!isIP('127.0.0.256') && !isIP(':::1') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && !isIP('01.2.3.4')",
    "ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD') && !ip.isCanonical('2001:db8::0:0:0:abcd')",
    "ip('127.0.0.1').isLoopback() && ip('::').isUnspecified() && ip('224.0.0.1').isLinkLocalMulticast()",
    "ip('fe80::1').isLinkLocalUnicast() && ip('10.1.2.3').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
    "ip('::1') == ip('0:0:0:0:0:0:0:1') && string(ip('2001:db8:0:0:1:0:0:1')) == '2001:db8::1:0:0:1'",
    "cidr('192.168.0.0/16').containsIP('192.168.1.1') && !cidr('192.168.0.0/16').containsIP(ip('10.0.0.1'))",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
    "cidr('192.168.1.5/24').masked() == cidr('192.168.1.0/24') && cidr('::1/128').prefixLength() == 128",
    "!isCIDR('192.168.0.0/33') && !isCIDR('10.0.0.0') && isCIDR('::/0')",
    "url('https://user@example.com:8080/a b?x=1&x=2').getHost() == 'example.com:8080'",
    "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'",
    "url('/path with space').getEscapedPath() == '/path%20with%20space'",
    "url('https://a/?k=1&k=2').getQuery() == {'k': ['1', '2']}",
    "isURL('https://a.b/c') && isURL('/a') && !isURL('a/b') && !isURL('https://a b/') && !isURL('../x')",
    "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('x') == ''",
    "'12 ab 34'.findAll('[0-9]+') == ['12', '34'] && '12 ab 34'.findAll('[0-9]+', 1) == ['12']",
    "[1, 2, 2].isSorted() && ![2, 1].isSorted() && [1, 2].sum() == 3 && [1, 3, 2].max() == 3 && ['b', 'a'].min() == 'a'",
    "[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1, 1u, 2].distinct() == [1, 2]",
    "[3, 1, 2].sort() == [1, 2, 3] && [[1], [2, [3]]].flatten() == [1, 2, [3]] && [1, 2, 3].slice(1, 2) == [2]",
    "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
  ]) {
    test(source, () => expect(run(source)).toBe(true));
  }
});
