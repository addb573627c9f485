import type { Place, Problems } from "./problems.ts";

/**
 * One mapping of a kubeconfig and the way to it. Reading a field of the wrong type adds a problem that names
 * file and field, and answers undefined, so that the reader can go on and find the next problem too.
 *
 * As in client-go an empty text, null and an absent field are the same.
 */
export class Fields {
  readonly place: Place;
  readonly problems: Problems;
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(place: Place, values: Readonly<Record<string, unknown>>, problems: Problems) {
    this.place = place;
    this.#values = values;
    this.problems = problems;
  }

  /** True even when the value is of the wrong type, which was or will be complained about already. */
  isSet(name: string): boolean {
    const value = this.raw(name);
    return value !== undefined && value !== null && value !== "";
  }

  raw(name: string): unknown {
    return Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
  }

  complain(name: string | undefined, problem: string): void {
    this.problems.add(this.at(name), problem);
  }

  at(name: string | undefined): Place {
    const field = [this.place.field, name].filter((part) => part !== undefined).join(".");
    return { file: this.place.file, field: field === "" ? undefined : field };
  }

  string(name: string): string | undefined {
    const value = this.raw(name);
    if (!this.isSet(name)) return undefined;
    if (typeof value === "string") return value;
    const advice = typeof value === "object" ? "give a single text" : "put it in quotes";
    this.complain(name, `is ${kindOf(value)} where a text belongs; ${advice}`);
    return undefined;
  }

  boolean(name: string): boolean {
    const value = this.raw(name);
    if (!this.isSet(name) || typeof value === "boolean") return value === true;
    this.complain(name, `is ${kindOf(value)} where true or false belongs; write one of them, without quotes`);
    return false;
  }

  strings(name: string): readonly string[] {
    return this.#list(name).flatMap((item, index) => {
      if (typeof item === "string") return [item];
      this.complain(`${name}[${index}]`, `is ${kindOf(item)} where a text belongs; put it in quotes`);
      return [];
    });
  }

  map(name: string): Fields | undefined {
    return this.isSet(name) ? this.#toFields(name, this.raw(name)) : undefined;
  }

  maps(name: string): readonly Fields[] {
    return this.#list(name).flatMap((item, index) => this.#toFields(`${name}[${index}]`, item) ?? []);
  }

  names(): readonly string[] {
    return Object.keys(this.#values);
  }

  #list(name: string): readonly unknown[] {
    const value = this.raw(name);
    if (!this.isSet(name)) return [];
    if (Array.isArray(value)) return value;
    this.complain(name, `is ${kindOf(value)} where a list belongs; start each item with "- "`);
    return [];
  }

  #toFields(name: string, value: unknown): Fields | undefined {
    if (isMapping(value)) return new Fields(this.at(name), value, this.problems);
    this.complain(name, `is ${kindOf(value)} where a mapping belongs; write "field: value" lines below it`);
    return undefined;
  }
}

export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a mapping";
  return typeof value === "string" ? "a text" : `a ${typeof value}`;
}
