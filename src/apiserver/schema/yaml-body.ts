import { Composer, isCollection, isMap, isScalar, isSeq, Lexer, Parser, type CST, type Tags } from "yaml";
import { exactInteger } from "../../kube/json-text.ts";
import { isDeeperThan, isJsonObject, JSON_DEPTH_MAX } from "../../kube/patch/json.ts";
import { DecodeFailure } from "./decode-failure.ts";
import { addProblem, formatPath, type PathSegment } from "./problems.ts";

/** What a text means, and which keys it says twice: of those the last one counts. */
export interface ParsedText {
  readonly value: unknown;
  /** As paths, like those of `findDuplicateKeys`. */
  readonly duplicates: readonly string[];
}

/**
 * Lexical tokens of a body in YAML. A line has about five, so that this is a manifest of 40,000 lines; reading it takes
 * half a second, in which the server does nothing else. JSON has no such limit.
 */
const YAML_TOKENS_MAX = 200_000;

/** Nodes that aliases may expand to: plenty for a manifest, too few for a bomb. */
const ALIASES_MAX = 100;

/** YAML as the real server and kubectl read it, which is nearly version 1.1: `0644` is 420 and `yes` is true, but dates are texts. */
export const AS_SERVERS_READ = { version: "1.1", customTags: withoutTimes } as const;

/** A body in YAML. Throws a DecodeFailure. */
export function parseYaml(text: string): ParsedText {
  // The library compares every key of a map with every other to find duplicates; 20,000 would take seconds.
  const intAsBigInt = LONG_NUMBER.test(text);
  const composer = new Composer({ ...AS_SERVERS_READ, uniqueKeys: false, intAsBigInt });
  const [document, another] = [...composer.compose(tokensOf(text), true, text.length)];
  const fault = document?.errors[0];
  if (document === undefined || fault !== undefined) {
    throw new DecodeFailure(firstLine(fault?.message ?? "the body is empty"));
  }
  if (another !== undefined) throw new DecodeFailure("the body must be a single document");
  const duplicates: string[] = [];
  findRepeatedKeys(document.contents, [], duplicates);
  const value = resolve(() => document.toJS({ maxAliasCount: ALIASES_MAX }) as unknown);
  return { value: intAsBigInt ? withExactIntegers(value) : value, duplicates };
}

/** In one of its notations a number too long for a double: 2^53 has 14 digits to the base of 16. */
const LONG_NUMBER = /[0-9A-Fa-f_]{14}/;

/** The library makes all whole numbers bigints, or none. */
function withExactIntegers(value: unknown): unknown {
  if (typeof value === "bigint") return exactInteger(value);
  if (Array.isArray(value)) return value.map(withExactIntegers);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withExactIntegers(member)]));
}

/** A list that contains itself is no bomb to the library, but has no end. */
function resolve(toValue: () => unknown): unknown {
  let value: unknown;
  try {
    value = toValue();
  } catch (error) {
    throw new DecodeFailure(error instanceof Error ? error.message : String(error));
  }
  if (isDeeperThan(value, JSON_DEPTH_MAX)) throw tooDeep();
  return value;
}

/** Octal numbers of version 1.2, which the real server knows as well. */
const NEW_OCTAL = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  test: /^[-+]?0o[0-7]+$/,
  resolve: (source: string) => {
    const size = exactInteger(BigInt(source.replace(/^[-+]/, "")));
    return source.startsWith("-") ? -size : size;
  },
};

/** Of the tags of version 1.1 those that have a meaning in JSON. */
function withoutTimes(tags: Tags): Tags {
  const isKept = (tag: Tags[number]) =>
    typeof tag === "string" ||
    (tag.format !== "TIME" && !/:(timestamp|binary|omap|pairs|set)$/.test(tag.tag));
  return [...tags.filter(isKept), NEW_OCTAL];
}

/**
 * The tokens of a text that can be composed. Composing recurses, and at some 10,000 levels, which are as many bytes, the
 * process does not throw but die; so the depth is watched here, where nothing recurses yet.
 */
function tokensOf(text: string): CST.Token[] {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (++count > YAML_TOKENS_MAX) {
      throw new DecodeFailure(`more than ${YAML_TOKENS_MAX} tokens; send an object of this size as JSON`);
    }
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > JSON_DEPTH_MAX) throw tooDeep();
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

function findRepeatedKeys(node: unknown, path: readonly PathSegment[], found: string[]): void {
  if (isSeq(node)) node.items.forEach((item, index) => findRepeatedKeys(item, [...path, index], found));
  if (!isMap(node)) return;
  const seen = new Set<string>();
  for (const { key, value } of node.items) {
    if (isCollection(key)) throw new DecodeFailure("a key must be a text, not a list or a map");
    const name = String(isScalar(key) ? key.value : key);
    if (seen.has(name)) addProblem(found, formatPath([...path, name]));
    seen.add(name);
    findRepeatedKeys(value, [...path, name], found);
  }
}

function tooDeep(): DecodeFailure {
  return new DecodeFailure(`the body nests deeper than ${JSON_DEPTH_MAX} levels`);
}

/** The rest of the message draws an arrow below the line in question. */
function firstLine(message: string): string {
  return message.split("\n", 1).join().replace(/:$/, "");
}
