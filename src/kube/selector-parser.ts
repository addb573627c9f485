import { KubeError } from "./errors.ts";

/**
 * The grammar of label selectors, by recursive descent over a list of words and symbols. Its error texts are
 * those of the real server, as far as they are fixed sentences: people search for them.
 *
 *     selector    = [ requirement { "," requirement } ]
 *     requirement = "!" key | key | key ("in" | "notin") "(" values ")" | key ("=" | "==" | "!=" | ">" | "<") [ value ]
 *     values      = [ value ] { "," [ value ] }
 *
 * `in` and `notin` are words like any other where a key or a value stands.
 */
export function parseRequirements(text: string): LabelRequirement[] {
  const tokens = createTokens(text);
  const requirements: LabelRequirement[] = [];
  if (tokens.peek() === "") return requirements;
  if (!startsRequirement(tokens.peek())) throw unexpected(tokens.peek(), "!, identifier, or 'end of string'");
  for (;;) {
    requirements.push(parseRequirement(tokens));
    const separator = tokens.next();
    if (separator === "") return requirements;
    if (separator !== ",") throw unexpected(separator, "',' or 'end of string'");
    if (!startsRequirement(tokens.peek())) throw unexpected(tokens.peek(), "identifier after ','");
  }
}

export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** None for `exists` and `!exists`, one for `=`, `!=`, `>` and `<`, one or more for `in` and `notin`; sorted. */
  readonly values: readonly string[];
}

export type LabelOperator = "=" | "!=" | "in" | "notin" | "exists" | "!exists" | ">" | "<";

interface Tokens {
  /** The next token without taking it; empty at the end. */
  peek(): string;
  next(): string;
}

const TOKEN = /==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+/g;

function createTokens(text: string): Tokens {
  const tokens = text.match(TOKEN) ?? [];
  let position = 0;
  return {
    peek: () => tokens[position] ?? "",
    next: () => tokens[position++] ?? "",
  };
}

function isWord(token: string): boolean {
  return token !== "" && !"=!(),<>".includes(token.charAt(0));
}

function startsRequirement(token: string): boolean {
  return token === "!" || isWord(token);
}

function parseRequirement(tokens: Tokens): LabelRequirement {
  const negated = tokens.peek() === "!";
  if (negated) tokens.next();
  const key = tokens.next();
  if (!isWord(key)) throw unparsable(key, "identifier");
  if (negated) return { key, operator: "!exists", values: [] };
  if (tokens.peek() === "" || tokens.peek() === ",") return { key, operator: "exists", values: [] };

  const operator = OPERATORS.get(tokens.peek());
  if (operator === undefined) throw unparsable(tokens.peek(), "in, notin, =, ==, !=, gt, lt");
  tokens.next();
  const isSet = operator === "in" || operator === "notin";
  return { key, operator, values: isSet ? parseValues(tokens) : [parseValue(tokens)] };
}

const OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ["=", "="],
  ["==", "="],
  ["!=", "!="],
  [">", ">"],
  ["<", "<"],
  ["in", "in"],
  ["notin", "notin"],
]);

function parseValue(tokens: Tokens): string {
  if (tokens.peek() === "" || tokens.peek() === ",") return "";
  const value = tokens.next();
  if (!isWord(value)) throw unparsable(value, "identifier");
  return value;
}

/** `(a,,b)` has an empty value in it, and so has `()`. */
function parseValues(tokens: Tokens): string[] {
  const open = tokens.next();
  if (open !== "(") throw unparsable(open, "'('");
  const values: string[] = [];
  for (;;) {
    values.push(isWord(tokens.peek()) ? tokens.next() : "");
    const separator = tokens.next();
    if (separator === ")") return values;
    if (separator !== ",") throw unparsable(separator, "',' or ')'");
  }
}

function unparsable(found: string, expected: string): KubeError {
  return new KubeError("BadInput", `unable to parse requirement: found '${found}', expected: ${expected}`);
}

function unexpected(found: string, expected: string): KubeError {
  return new KubeError("BadInput", `found '${found}', expected: ${expected}`);
}
