import { assert } from "../base/assert.ts";
import { parseType, splitTypes, type Type } from "./types.ts";
import type { Value } from "./values.ts";

/** What a function may ask of the evaluation that calls it. */
export interface Work {
  /** Beyond the call itself and the length of what goes in and comes out, which are counted for it. */
  charge(steps: number): void;
}

export interface Overload {
  /** `x.f(y)` rather than `f(x, y)`; the target is the first parameter. */
  readonly isMethod: boolean;
  readonly params: readonly Type[];
  readonly result: Type;
  /** Called with values of these types. */
  readonly run: (args: readonly Value[], work: Work) => Value;
}

export type Declaration = readonly [name: string, overload: Overload];
export type Library = readonly Declaration[];

const SIGNATURE = /^(?:(.+) -> )?([^\s()]+)\((.*)\) (.+)$/;

/**
 * A function by its signature: `size(list(A)) int`, with the target of a method in front: `string -> contains(string)
 * bool`. One line serves the check before and the choice at run time.
 */
export function declare(signature: string, run: (...args: never[]) => Value): Declaration {
  const match = SIGNATURE.exec(signature);
  assert(match !== null, `not a signature: ${signature}`);
  const [, target, name = "", params = "", result = ""] = match;
  const types = [...(target === undefined ? [] : [target]), ...splitTypes(params)].map(parseType);
  const call = run as (...args: readonly (Value | Work)[]) => Value;
  return [
    name,
    {
      isMethod: target !== undefined,
      params: types,
      result: parseType(result),
      run: (args, work) => call(...args, work),
    },
  ];
}

/** All functions of an environment, found by name, form and number of arguments. */
export class Functions {
  readonly #overloads = new Map<string, Overload[]>();
  readonly #names = new Set<string>();

  constructor(...libraries: readonly Library[]) {
    for (const [name, overload] of libraries.flat()) {
      const key = keyOf(name, overload.isMethod, overload.params.length);
      const known = this.#overloads.get(key);
      if (known === undefined) this.#overloads.set(key, [overload]);
      else known.push(overload);
      this.#names.add(keyOf(name, overload.isMethod, -1));
    }
  }

  /** The target of a method counts as an argument. */
  find(name: string, isMethod: boolean, count: number): readonly Overload[] {
    return this.#overloads.get(keyOf(name, isMethod, count)) ?? [];
  }

  /** Under that name, whatever the arguments. */
  has(name: string, isMethod: boolean): boolean {
    return this.#names.has(keyOf(name, isMethod, -1));
  }
}

function keyOf(name: string, isMethod: boolean, count: number): string {
  return `${isMethod ? "." : ""}${name}/${count}`;
}
