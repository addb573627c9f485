import { createIndexFeed, type IndexFeed, type IndexTarget } from "../auth/index-feed.ts";
import type { ApiObject } from "../objects.ts";
import type { ObjectStore, StoreKey } from "../store/store.ts";
import { compilePolicy, type CompiledPolicy } from "./compile.ts";
import { ExpressionError } from "./environment.ts";
import type { Binding, Policy } from "./policy.ts";

/** A policy with those that put it into force. */
export interface Hook {
  readonly name: string;
  readonly policy: Policy;
  readonly bindings: readonly Binding[];
  /** Undefined where it does not compile, which `problem` then says why: it was stored by an older server. */
  readonly compiled: CompiledPolicy | undefined;
  readonly problem: string | undefined;
}

/**
 * Policies and bindings of one kind, compiled once for each version of them. They follow the store's watch and are
 * looked at through `hooks`, which shows every write committed so far: whoever has created a policy finds it in force.
 */
export interface PolicyIndex {
  /** By name, those with a binding alone. A policy that is replaced later does not change what was returned. */
  hooks(): readonly Hook[];
}

export interface PolicyIndexes {
  readonly mutating: PolicyIndex;
  readonly validating: PolicyIndex;
}

const indexes = new WeakMap<ObjectStore, PolicyIndexes>();

/** One for a store, made when it is first written to. */
export function policiesOf(store: ObjectStore): PolicyIndexes {
  let found = indexes.get(store);
  if (found === undefined) {
    found = {
      mutating: createPolicyIndex(store, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
      validating: createPolicyIndex(
        store,
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
      ),
    };
    indexes.set(store, found);
  }
  return found;
}

const GROUP = "admissionregistration.k8s.io";

function createPolicyIndex(store: ObjectStore, policiesPlural: string, bindingsPlural: string): PolicyIndex {
  let hooks: readonly Hook[] | undefined;
  const forget = () => (hooks = undefined);
  const policies = createTable(forget);
  const bindings = createTable(forget);
  const feeds: readonly IndexFeed[] = [
    createIndexFeed(store, `${policiesPlural}.${GROUP}`, policies),
    createIndexFeed(store, `${bindingsPlural}.${GROUP}`, bindings),
  ];
  return {
    hooks() {
      for (const feed of feeds) feed.sync();
      hooks ??= combine(policies.objects, bindings.objects);
      return hooks;
    },
  };
}

function createTable(
  onChange: () => void,
): IndexTarget & { readonly objects: ReadonlyMap<string, ApiObject> } {
  const objects = new Map<string, ApiObject>();
  return {
    objects,
    put({ name }: StoreKey, object) {
      objects.set(name, object);
      onChange();
    },
    remove({ name }: StoreKey) {
      objects.delete(name);
      onChange();
    },
    clear() {
      objects.clear();
      onChange();
    },
  };
}

function combine(
  policies: ReadonlyMap<string, Policy>,
  bindings: ReadonlyMap<string, Binding>,
): readonly Hook[] {
  const byPolicy = new Map<string, Binding[]>();
  for (const binding of sortedValues(bindings)) {
    const { policyName = "" } = binding.spec ?? {};
    byPolicy.set(policyName, [...(byPolicy.get(policyName) ?? []), binding]);
  }
  return sortedValues(policies).flatMap((policy) => {
    const name = policy.metadata.name ?? "";
    const bound = byPolicy.get(name);
    return bound === undefined ? [] : [{ name, policy, bindings: bound, ...compiledOnce(policy) }];
  });
}

function sortedValues<T>(objects: ReadonlyMap<string, T>): T[] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}

/** By the parsed object, which is another for each version. */
const compilations = new WeakMap<Policy, Pick<Hook, "compiled" | "problem">>();

function compiledOnce(policy: Policy): Pick<Hook, "compiled" | "problem"> {
  let found = compilations.get(policy);
  if (found === undefined) compilations.set(policy, (found = tryCompile(policy)));
  return found;
}

function tryCompile(policy: Policy): Pick<Hook, "compiled" | "problem"> {
  try {
    return { compiled: compilePolicy(policy), problem: undefined };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { compiled: undefined, problem: error.message };
  }
}
