import type { Program } from "../../cel/program.ts";
import type { Type } from "../../cel/types.ts";
import { compileExpression, ExpressionError, type ExpressionContext, type Wanted } from "./environment.ts";
import type { Mutation, NamedExpression, Policy, Validation } from "./policy.ts";

/** A policy that is ready to be asked. */
export interface CompiledPolicy {
  readonly name: string;
  readonly policy: Policy;
  readonly ignoresFailures: boolean;
  readonly matchConditions: readonly { readonly name: string; readonly program: Program }[];
  readonly variables: ReadonlyMap<string, Program>;
  readonly validations: readonly CompiledValidation[];
  readonly auditAnnotations: readonly { readonly key: string; readonly program: Program }[];
  readonly mutations: readonly CompiledMutation[];
}

export interface CompiledValidation {
  readonly validation: Validation;
  readonly program: Program;
  readonly message: Program | undefined;
}

export interface CompiledMutation {
  readonly patchType: "ApplyConfiguration" | "JSONPatch";
  readonly program: Program;
}

/** Called for each expression that is wrong; `field` is its path in the spec, as in `validations[0].expression`. */
export type OnProblem = (problem: {
  readonly field: string;
  readonly expression: string;
  readonly why: string;
}) => void;

/**
 * Compiles every expression of a policy. Where it is created or changed, each problem is told; of a stored one, which
 * was checked then, the first is thrown.
 */
export function compilePolicy(policy: Policy, onProblem?: OnProblem): CompiledPolicy {
  const { spec = {}, metadata } = policy;
  const compiler = new PolicyCompiler(spec.paramKind !== undefined, onProblem);
  // Conditions are asked first and know no variables.
  const matchConditions = compiler.named("matchConditions", spec.matchConditions);
  const variables = compiler.variables(spec.variables);
  return {
    name: metadata.name ?? "",
    policy,
    ignoresFailures: spec.failurePolicy === "Ignore",
    matchConditions,
    variables,
    validations: compiler.validations(spec.validations),
    auditAnnotations: compiler.auditAnnotations(spec.auditAnnotations),
    mutations: compiler.mutations(spec.mutations),
  };
}

class PolicyCompiler {
  readonly #hasParams: boolean;
  readonly #onProblem: OnProblem | undefined;
  #variables: ReadonlyMap<string, Type> | undefined;

  constructor(hasParams: boolean, onProblem: OnProblem | undefined) {
    this.#hasParams = hasParams;
    this.#onProblem = onProblem;
  }

  named(list: string, expressions: readonly NamedExpression[] = []): CompiledPolicy["matchConditions"] {
    return expressions.flatMap(({ name = "", expression }, index) =>
      this.#compile(`${list}[${index}].expression`, expression, "bool").map((program) => ({ name, program })),
    );
  }

  /** Each may use those before it. */
  variables(expressions: readonly NamedExpression[] = []): ReadonlyMap<string, Program> {
    const programs = new Map<string, Program>();
    const types = new Map<string, Type>();
    if (expressions.length > 0) this.#variables = types;
    for (const [index, { name = "", expression }] of expressions.entries()) {
      for (const program of this.#compile(`variables[${index}].expression`, expression, "anything")) {
        programs.set(name, program);
        types.set(name, program.type);
      }
    }
    return programs;
  }

  validations(validations: readonly Validation[] = []): CompiledValidation[] {
    return validations.flatMap((validation, index) => {
      const path = `validations[${index}]`;
      const programs = this.#compile(`${path}.expression`, validation.expression, "bool");
      const [message] = this.#compile(`${path}.messageExpression`, validation.messageExpression, "string");
      return programs.map((program) => ({ validation, program, message }));
    });
  }

  auditAnnotations(
    annotations: readonly { readonly key?: string; readonly valueExpression?: string }[] = [],
  ): CompiledPolicy["auditAnnotations"] {
    return annotations.flatMap(({ key = "", valueExpression }, index) =>
      this.#compile(`auditAnnotations[${index}].valueExpression`, valueExpression, "string or null").map(
        (program) => ({ key, program }),
      ),
    );
  }

  mutations(mutations: readonly Mutation[] = []): CompiledMutation[] {
    return mutations.flatMap(({ patchType, applyConfiguration, jsonPatch }, index): CompiledMutation[] => {
      const path = `mutations[${index}]`;
      if (patchType === "JSONPatch") {
        const programs = this.#compile(
          `${path}.jsonPatch.expression`,
          jsonPatch?.expression,
          "list(JSONPatch)",
        );
        return programs.map((program) => ({ patchType, program }));
      }
      const expression = applyConfiguration?.expression;
      const programs = this.#compile(`${path}.applyConfiguration.expression`, expression, "Object");
      return programs.map((program) => ({ patchType: "ApplyConfiguration", program }));
    });
  }

  /** Nothing for an expression that is not there, or wrong and told of. */
  #compile(field: string, expression: string | undefined, wanted: Wanted): Program[] {
    if (expression === undefined || expression.trim() === "") return [];
    const isMutation = wanted === "Object" || wanted === "list(JSONPatch)";
    const context: ExpressionContext = {
      hasParams: this.#hasParams,
      isMutation,
      ...(this.#variables === undefined ? {} : { variables: this.#variables }),
    };
    try {
      return [compileExpression(expression, context, wanted)];
    } catch (error) {
      if (!(error instanceof ExpressionError) || this.#onProblem === undefined) throw error;
      this.#onProblem({ field, expression, why: error.message });
      return [];
    }
  }
}
