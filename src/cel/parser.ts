import { CelError } from "./errors.ts";
import { expandMacro } from "./macros.ts";
import { toInt, toUint, Uint } from "./numbers.ts";
import type { Entry, Expr, Field, Item } from "./syntax.ts";
import { readTokens, type Token } from "./tokens.ts";

/**
 * How deep an expression may nest. cel-go reads 250 levels of recursion; a recursion of that depth is far from the end
 * of any stack, and what an evaluation needs of it is a few frames a level.
 */
const DEPTH_MAX = 250;

/** Words that are no names by themselves; after a dot they are fields, as in `request.namespace`. */
const RESERVED: ReadonlySet<string> = new Set(
  "as break const continue else false for function if import in let loop package namespace null return true var void while".split(
    " ",
  ),
);

/** Reads a whole expression; throws a CelError `Syntax` that says where. */
export function parseExpression(source: string): Expr {
  return new Parser(readTokens(source)).parse();
}

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  parse(): Expr {
    const expr = this.#expression();
    if (this.#token.kind !== "end") throw this.#unexpected();
    return expr;
  }

  get #token(): Token {
    return this.#tokens[this.#next] ?? { kind: "end", at: 0 };
  }

  /** Every way down the grammar leads through here. */
  #expression(): Expr {
    this.#descend();
    const condition = this.#logic("||");
    const at = this.#token.at;
    if (!this.#take("?")) {
      this.#depth--;
      return condition;
    }
    const yes = this.#logic("||");
    this.#expect(":");
    const no = this.#expression();
    this.#depth--;
    return { kind: "choice", condition, yes, no, at };
  }

  #logic(operator: "||" | "&&"): Expr {
    const operand = () => (operator === "||" ? this.#logic("&&") : this.#binary(0));
    const terms = [operand()];
    const at = this.#token.at;
    while (this.#take(operator)) terms.push(operand());
    const [only] = terms;
    if (terms.length === 1 && only !== undefined) return only;
    return { kind: operator === "||" ? "or" : "and", terms, at };
  }

  /** Relations, sums and products, each from left to right. */
  #binary(level: number): Expr {
    const operators = LEVELS[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    let links = 0;
    while (true) {
      const token = this.#token;
      const text = token.kind === "sign" || token.kind === "ident" ? token.text : "";
      if (!operators.has(text) || (token.kind === "ident" && text !== "in")) {
        this.#depth -= links;
        return left;
      }
      this.#next++;
      // A chain nests to the left, and is evaluated so.
      links++;
      this.#descend();
      const right = this.#binary(level + 1);
      const name = text === "in" ? "@in" : `_${text}_`;
      left = { kind: "call", name, target: undefined, args: [left, right], at: token.at };
    }
  }

  #unary(): Expr {
    const { at } = this.#token;
    if (this.#take("!")) return this.#prefixed("!", at);
    if (!this.#take("-")) return this.#member(this.#primary());
    const token = this.#token;
    if (token.kind !== "int" && token.kind !== "double") return this.#prefixed("-", at);
    this.#next++;
    // Read with its sign: the least int has no positive counterpart.
    return this.#member(this.#number(token.kind, `-${token.text}`, at));
  }

  /** An even number of them cancel out only where the operand is of the right type, so each is a call. */
  #prefixed(operator: "!" | "-", at: number): Expr {
    this.#descend();
    const operand = this.#unary();
    this.#depth--;
    return { kind: "call", name: `${operator}_`, target: undefined, args: [operand], at };
  }

  #member(start: Expr): Expr {
    let operand = start;
    let links = 0;
    while (true) {
      const { at } = this.#token;
      if (this.#take(".")) operand = this.#select(operand, at);
      else if (this.#take("[")) operand = this.#index(operand, at);
      else if (this.#isSign("{") && qualifiedName(operand) !== undefined) operand = this.#object(operand);
      else {
        this.#depth -= links;
        return operand;
      }
      links++;
      this.#descend();
    }
  }

  #select(operand: Expr, at: number): Expr {
    const isOptional = this.#take("?");
    const token = this.#token;
    if (token.kind !== "ident" && token.kind !== "quoted-ident") throw this.#unexpected();
    if (token.kind === "ident" && KEYWORDS.has(token.text)) throw this.#unexpected();
    this.#next++;
    if (isOptional || token.kind === "quoted-ident" || !this.#isSign("(")) {
      return { kind: "select", operand, field: token.text, isTest: false, isOptional, at };
    }
    const openAt = this.#token.at;
    this.#next++;
    return expandMacro({
      kind: "call",
      name: token.text,
      target: operand,
      args: this.#listUntil(")", () => this.#expression()),
      at: openAt,
    });
  }

  #index(operand: Expr, at: number): Expr {
    const name = this.#take("?") ? "_[?_]" : "_[_]";
    const index = this.#expression();
    this.#expect("]");
    return { kind: "call", name, target: undefined, args: [operand, index], at };
  }

  #object(operand: Expr): Expr {
    const { at } = this.#token;
    this.#next++;
    const fields = this.#listUntil("}", (): Field => {
      const isOptional = this.#take("?");
      const token = this.#token;
      if (token.kind !== "ident" && token.kind !== "quoted-ident") throw this.#unexpected();
      this.#next++;
      const { at } = this.#token;
      this.#expect(":");
      return { name: token.text, value: this.#expression(), isOptional, at };
    });
    return { kind: "object", type: (qualifiedName(operand) ?? "").replace(/^\./, ""), fields, at };
  }

  #primary(): Expr {
    const token = this.#token;
    const { at } = token;
    this.#next++;
    switch (token.kind) {
      case "int":
      case "uint":
      case "double":
        return this.#number(token.kind, token.text, at);
      case "string":
        return { kind: "literal", value: token.text, at };
      case "bytes":
        return { kind: "literal", value: token.bytes, at };
      case "ident":
        return this.#identifier(token.text, at, "");
      case "sign":
        return this.#bracketed(token.text, at);
      case "quoted-ident":
      case "end":
        break;
    }
    this.#next--;
    throw this.#unexpected();
  }

  #bracketed(sign: string, at: number): Expr {
    if (sign === "(") {
      const inner = this.#expression();
      this.#expect(")");
      return inner;
    }
    if (sign === "[") {
      const item = (): Item => {
        const isOptional = this.#take("?");
        return { value: this.#expression(), isOptional };
      };
      return { kind: "list", items: this.#listUntil("]", item), at };
    }
    if (sign === "{") {
      const entry = (): Entry => {
        const isOptional = this.#take("?");
        const key = this.#expression();
        this.#expect(":");
        return { key, value: this.#expression(), isOptional };
      };
      return { kind: "map", entries: this.#listUntil("}", entry), at };
    }
    const token = this.#token;
    if (sign === "." && token.kind === "ident") {
      this.#next++;
      return this.#identifier(token.text, at, ".");
    }
    this.#next--;
    throw this.#unexpected();
  }

  #identifier(name: string, at: number, dot: "" | "."): Expr {
    if (dot === "" && name === "null") return { kind: "literal", value: null, at };
    if (dot === "" && (name === "true" || name === "false")) {
      return { kind: "literal", value: name === "true", at };
    }
    if (RESERVED.has(name)) {
      throw new CelError("Syntax", `Syntax error: reserved identifier: ${name}`, at);
    }
    const openAt = this.#token.at;
    if (!this.#take("(")) return { kind: "ident", name: `${dot}${name}`, at };
    const args = this.#listUntil(")", () => this.#expression());
    return expandMacro({ kind: "call", name, target: undefined, args, at: openAt });
  }

  #number(kind: "int" | "uint" | "double", text: string, at: number): Expr {
    if (kind === "double") return { kind: "literal", value: Number(text), at };
    const sign = text.startsWith("-") ? -1n : 1n;
    const size = BigInt(text.replace(/^-|[uU]$/g, ""));
    const value = kind === "int" ? toInt(sign * size) : toUint(size);
    if (value === undefined) throw new CelError("Syntax", `Syntax error: invalid ${kind} literal`, at);
    return { kind: "literal", value: kind === "int" ? value : new Uint(value), at };
  }

  /** Items with commas between them, and perhaps one after the last of a literal. */
  #listUntil<T>(close: ")" | "]" | "}", item: () => T): T[] {
    const items: T[] = [];
    while (!this.#take(close)) {
      if (items.length > 0) {
        this.#expect(",");
        if (close !== ")" && this.#take(close)) return items;
      }
      items.push(item());
    }
    return items;
  }

  #isSign(text: string): boolean {
    const token = this.#token;
    return token.kind === "sign" && token.text === text;
  }

  #take(text: string): boolean {
    if (!this.#isSign(text)) return false;
    this.#next++;
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw this.#unexpected(text);
  }

  #descend(): void {
    if (++this.#depth <= DEPTH_MAX) return;
    throw new CelError("Syntax", `expression recursion limit exceeded: ${DEPTH_MAX}`, this.#token.at);
  }

  #unexpected(expected?: string): CelError {
    const token = this.#token;
    const found = token.kind === "end" ? "<EOF>" : "text" in token ? token.text : "bytes";
    const wanted = expected === undefined ? "" : ` expecting '${expected}'`;
    return new CelError("Syntax", `Syntax error: mismatched input '${found}'${wanted}`, token.at);
  }
}

/** These are tokens of their own and no field either. */
const KEYWORDS: ReadonlySet<string> = new Set(["in", "true", "false", "null"]);

const LEVELS: readonly ReadonlySet<string>[] = [
  new Set(["<", "<=", ">=", ">", "==", "!=", "in"]),
  new Set(["+", "-"]),
  new Set(["*", "/", "%"]),
];

/** `a.b.c` of names alone; undefined of everything else. */
export function qualifiedName(expr: Expr): string | undefined {
  if (expr.kind === "ident") return expr.name;
  if (expr.kind !== "select" || expr.isTest || expr.isOptional) return undefined;
  const operand = qualifiedName(expr.operand);
  return operand === undefined ? undefined : `${operand}.${expr.field}`;
}
