import { CelError } from "../../cel/errors.ts";
import { fromJson } from "../../cel/json.ts";
import { Budget, type Program } from "../../cel/program.ts";
import { MapValue, type Value } from "../../cel/values.ts";
import type { Kind } from "../kinds.ts";
import { fieldAt, type ApiObject } from "../objects.ts";
import { toShown } from "../spelling.ts";
import type { CompiledPolicy } from "./compile.ts";
import { shownObject, shownRequest, type PolicyRequest } from "./request.ts";

/** Steps that one expression may take: what Kubernetes allows, 0.2 s at most. */
const EXPRESSION_STEPS_MAX = 1_000_000;
/**
 * What all mutating policies together may take over one attempt at a write, and all validating ones likewise: 0.5 s at
 * most. A real server allows four times as much for each binding, in a thread of its own; here all requests share one.
 */
export const REQUEST_STEPS_MAX = 2_500_000;

export interface Surroundings {
  readonly request: PolicyRequest;
  /** As which kind the policy asked for it. */
  readonly matched: Kind;
  /** Undefined where the policy uses none, or there is none. */
  readonly params: ApiObject | undefined;
  readonly namespace: ApiObject | undefined;
  readonly budget: Budget;
}

/** What went wrong, in the words of a real server. */
export class PolicyFailure extends Error {
  override readonly name = "PolicyFailure";
}

/** The values that the expressions of one policy see. Each is made when an expression first asks for it. */
export class Activation {
  readonly #surroundings: Surroundings;
  readonly #known = new Map<string, Value>();
  readonly #variables: ReadonlyMap<string, Program>;

  constructor({ variables }: CompiledPolicy, surroundings: Surroundings) {
    this.#variables = variables;
    this.#surroundings = surroundings;
  }

  /** Throws a PolicyFailure. */
  evaluate(program: Program): Value {
    try {
      return this.#run(program, new Budget(EXPRESSION_STEPS_MAX, this.#surroundings.budget));
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      throw new PolicyFailure(`expression '${program.source.trim()}' resulted in error: ${error.message}`);
    }
  }

  #run(program: Program, budget: Budget): Value {
    return program.evaluate((name) => this.#variable(name, budget), budget);
  }

  #variable(name: string, budget: Budget): Value | undefined {
    // What a variable costs is charged to whoever asks for it first.
    if (name === "variables")
      return new LazyVariables(this.#variables, this.#known, (one) => this.#run(one, budget));
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const value = this.#make(name);
    if (value !== undefined) this.#known.set(name, value);
    return value;
  }

  #make(name: string): Value | undefined {
    const { request, matched, params, namespace } = this.#surroundings;
    switch (name) {
      case "object":
        return fromJson(this.#shown(request.object));
      case "oldObject":
        return fromJson(this.#shown(request.old));
      case "request":
        return fromJson(shownRequest(request, matched));
      case "params":
        return fromJson(params ?? null);
      case "namespaceObject":
        return fromJson(namespace === undefined ? null : shownNamespace(namespace));
      default:
        return undefined;
    }
  }

  #shown(object: ApiObject | undefined): unknown {
    if (object === undefined) return null;
    const { request, matched } = this.#surroundings;
    if (request.bodyKind.kind !== request.resource.kind) return shownObject(request.bodyKind, object);
    return shownObject(matched, toShown(matched, object));
  }
}

/** `variables.x`: evaluated when first asked for, and once. Keys of `known` begin with a dot, which no name does. */
class LazyVariables extends MapValue {
  readonly #programs: ReadonlyMap<string, Program>;
  readonly #known: Map<string, Value>;
  readonly #run: (program: Program) => Value;

  constructor(
    programs: ReadonlyMap<string, Program>,
    known: Map<string, Value>,
    run: (program: Program) => Value,
  ) {
    super();
    this.#programs = programs;
    this.#known = known;
    this.#run = run;
  }

  get size(): number {
    return this.#programs.size;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== "string") return undefined;
    const known = this.#known.get(`.${key}`);
    if (known !== undefined) return known;
    const program = this.#programs.get(key);
    if (program === undefined) return undefined;
    const value = this.#run(program);
    this.#known.set(`.${key}`, value);
    return value;
  }

  keys(): Iterable<Value> {
    return this.#programs.keys();
  }
}

/** Only what the environment declares of it: neither owners nor managers. */
function shownNamespace(namespace: ApiObject): unknown {
  const { ownerReferences: _owners, managedFields: _managers, uid, ...metadata } = namespace.metadata;
  return {
    metadata: { ...metadata, ...(uid === undefined ? {} : { UID: uid }) },
    spec: fieldAt(namespace, "spec") ?? {},
    status: fieldAt(namespace, "status") ?? {},
  };
}
