import { CelError } from "../../cel/errors.ts";
import { Budget } from "../../cel/program.ts";
import { jsonEqual, type JsonObject } from "../../kube/patch/json.ts";
import { StatusError } from "../errors.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "../rules/admission.ts";
import { DecodeFailure } from "../schema/decode-failure.ts";
import { decodeFields } from "../schema/decode.ts";
import { knownSchema, type GroupVersionKind } from "../schema/schema.ts";
import { PolicyFailure, REQUEST_STEPS_MAX } from "./activation.ts";
import { applyConfiguration } from "./apply-configuration.ts";
import type { CompiledMutation } from "./compile.ts";
import { findInvocations, meetsConditions, type Invocation } from "./invocations.ts";
import { patchWithOperations } from "./json-patch.ts";
import type { Hook } from "./policy-index.ts";
import { shownObject, type PolicyRequest } from "./request.ts";

/** A request that has an object. */
export type MutableRequest = PolicyRequest & { readonly object: ApiObject };

/**
 * What mutating policies make of the object of a request. `settle` gives it defaults and what the server's own plugins
 * add, after each change. Once the last policy is done, those that ask for it (`reinvocationPolicy: IfNeeded`) see what
 * came after them, once. Throws the answer where a policy fails and does not say to ignore that.
 */
export function mutateRequest(
  deps: AdmissionDeps,
  hooks: readonly Hook[],
  request: MutableRequest,
  settle: (object: ApiObject) => ApiObject,
): ApiObject {
  const { invocations, failures } = findInvocations(deps, hooks, request);
  const problems = failures
    .filter(({ hook }) => hook.policy.spec?.failurePolicy !== "Ignore")
    .map(({ hook, binding, message }) => problemText(hook.name, binding?.metadata.name, message));
  const run: Run = { request, settle, budget: new Budget(REQUEST_STEPS_MAX), problems };
  let object = request.object;
  /** How the object was when the policy had been asked. */
  const asked = new Map<string, ApiObject>();
  for (const invocation of invocations) {
    object = invoke(invocation, object, run);
    asked.set(invocation.key, object);
  }
  for (const invocation of invocations) {
    const isEligible = invocation.compiled.policy.spec?.reinvocationPolicy === "IfNeeded";
    if (isEligible && asked.get(invocation.key) !== object) object = invoke(invocation, object, run);
  }
  if (problems.length > 0) throw denied(request, problems);
  return object;
}

interface Run {
  readonly request: MutableRequest;
  readonly settle: (object: ApiObject) => ApiObject;
  readonly budget: Budget;
  /** Added to. */
  readonly problems: string[];
}

function invoke(invocation: Invocation, given: ApiObject, run: Run): ApiObject {
  const { request, settle, budget } = run;
  let object = given;
  try {
    if (!meetsConditions(invocation, invocation.activate({ ...request, object }, budget))) return object;
  } catch (error) {
    note(invocation, error, run);
    return object;
  }
  for (const mutation of invocation.compiled.mutations) {
    try {
      const activation = invocation.activate({ ...request, object }, budget);
      const patched = patch(request.bodyKind, object, mutation, activation.evaluate(mutation.program));
      // The same object says that nothing has changed.
      if (!jsonEqual(patched, object)) object = settle(patched);
    } catch (error) {
      note(invocation, error, run);
    }
  }
  return object;
}

/** A failure is one of the request, unless the policy says to ignore it. Anything else is a fault of ours. */
function note({ compiled, binding }: Invocation, error: unknown, { problems }: Run): void {
  const isFailure =
    error instanceof PolicyFailure || error instanceof CelError || error instanceof DecodeFailure;
  if (!isFailure) throw error;
  if (!compiled.ignoresFailures) {
    problems.push(problemText(compiled.name, binding.metadata.name, error.message));
  }
}

function patch(
  kind: GroupVersionKind,
  object: ApiObject,
  { patchType }: CompiledMutation,
  value: Parameters<typeof patchWithOperations>[1],
): ApiObject {
  const shown = shownObject(kind, object) as unknown as JsonObject;
  const patched =
    patchType === "JSONPatch" ? patchWithOperations(shown, value) : applyConfiguration(kind, shown, value);
  const decoded = decodeFields(knownSchema(kind), patched).object as unknown as ApiObject;
  return withOwnMetadata(decoded, object);
}

/** What names the object, and what only the server sets, is no policy's to change. */
function withOwnMetadata(patched: ApiObject, { metadata: own, ...object }: ApiObject): ApiObject {
  const { labels, annotations, finalizers, ownerReferences } = patched.metadata;
  const {
    labels: _labels,
    annotations: _annotations,
    finalizers: _finalizers,
    ownerReferences: _owners,
    ...kept
  } = own;
  const given = Object.entries({ labels, annotations, finalizers, ownerReferences });
  const { kind, apiVersion } = object;
  return {
    ...patched,
    ...(kind === undefined ? {} : { kind }),
    ...(apiVersion === undefined ? {} : { apiVersion }),
    metadata: { ...kept, ...Object.fromEntries(given.filter(([, value]) => value !== undefined)) },
  };
}

function problemText(policy: string, binding: string | undefined, message: string): string {
  return binding === undefined
    ? `policy "${policy}" denied request: ${message}`
    : `policy '${policy}' with binding '${binding}' denied request: ${message}`;
}

/** A real server answers with the code of Forbidden and the reason Invalid. */
function denied(
  { resource: { group, plural }, name }: PolicyRequest,
  problems: readonly string[],
): StatusError {
  return new StatusError(403, problems[0] ?? "", {
    reason: "Invalid",
    details: {
      ...(name === "" ? {} : { name }),
      ...(group === "" ? {} : { group }),
      kind: plural,
      causes: problems.map((message) => ({ message })),
    },
  });
}
