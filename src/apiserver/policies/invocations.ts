import { assert } from "../../base/assert.ts";
import type { Budget } from "../../cel/program.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "../rules/admission.ts";
import { Activation, PolicyFailure } from "./activation.ts";
import type { CompiledPolicy } from "./compile.ts";
import { matchRequest } from "./match.ts";
import { collectParams } from "./params.ts";
import type { Hook } from "./policy-index.ts";
import type { Binding } from "./policy.ts";
import type { PolicyRequest } from "./request.ts";

/** A policy that is about a request, under one binding, with one object of parameters. */
export interface Invocation {
  readonly compiled: CompiledPolicy;
  readonly binding: Binding;
  /** Tells it apart over a request: policy, binding and parameters. */
  readonly key: string;
  activate(request: PolicyRequest, budget: Budget): Activation;
}

/** Why a policy could not be asked at all; `binding` is absent where it is the policy itself. */
export interface SetupFailure {
  readonly hook: Hook;
  readonly binding: Binding | undefined;
  readonly message: string;
}

/** What is to be asked about a request, in order, and what could not be. */
export function findInvocations(
  deps: AdmissionDeps,
  hooks: readonly Hook[],
  request: PolicyRequest,
): { readonly invocations: readonly Invocation[]; readonly failures: readonly SetupFailure[] } {
  const invocations: Invocation[] = [];
  const failures: SetupFailure[] = [];
  const labels = (name: string) => deps.getObject("namespaces", undefined, name)?.metadata.labels ?? {};
  for (const hook of hooks) {
    const matched = matchRequest(hook.policy.spec?.matchConstraints ?? {}, request, labels);
    if (matched === undefined) continue;
    for (const binding of hook.bindings) {
      if (matchRequest(binding.spec?.matchResources ?? {}, request, labels) === undefined) continue;
      if (hook.compiled === undefined) {
        failures.push({ hook, binding, message: hook.problem ?? "" });
        continue;
      }
      try {
        invocations.push(
          ...invocationsOf(deps, { ...hook, compiled: hook.compiled }, { binding, matched, request }),
        );
      } catch (error) {
        if (!(error instanceof PolicyFailure)) throw error;
        failures.push({ hook, binding, message: error.message });
      }
    }
  }
  return { invocations, failures };
}

function invocationsOf(
  deps: AdmissionDeps,
  { compiled, policy }: Hook & { readonly compiled: CompiledPolicy },
  { binding, matched, request: { namespace } }: { binding: Binding; matched: Kind; request: PolicyRequest },
): Invocation[] {
  const collected = collectParams(deps, policy.spec?.paramKind, binding.spec?.paramRef, namespace);
  return collected.map((params) => ({
    compiled,
    binding,
    key: [compiled.name, binding.metadata.name, params?.metadata.namespace, params?.metadata.name].join("/"),
    activate: (request, budget) =>
      new Activation(compiled, { request, matched, params, namespace: namespaceOf(deps, request), budget }),
  }));
}

/** The one the object is in; a Namespace is in none. */
function namespaceOf(deps: AdmissionDeps, { resource, namespace }: PolicyRequest): ApiObject | undefined {
  return resource.namespaced && namespace !== ""
    ? deps.getObject("namespaces", undefined, namespace)
    : undefined;
}

/** Whether all conditions hold; the first that does not ends it, and one that fails counts only if all others hold. */
export function meetsConditions({ compiled }: Invocation, activation: Activation): boolean {
  let failure: PolicyFailure | undefined;
  for (const { program } of compiled.matchConditions) {
    try {
      const value = activation.evaluate(program);
      assert(typeof value === "boolean", `a condition of ${compiled.name} was compiled as a bool`);
      if (!value) return false;
    } catch (error) {
      if (!(error instanceof PolicyFailure)) throw error;
      failure ??= error;
    }
  }
  if (failure !== undefined) throw failure;
  return true;
}
