import { Budget, type Program } from "../../cel/program.ts";
import { StatusError } from "../errors.ts";
import { resourceName } from "../../kube/object.ts";
import type { AdmissionDeps } from "../rules/admission.ts";
import { PolicyFailure, REQUEST_STEPS_MAX, type Activation } from "./activation.ts";
import type { CompiledValidation } from "./compile.ts";
import { findInvocations, meetsConditions, type Invocation } from "./invocations.ts";
import type { Hook } from "./policy-index.ts";
import type { PolicyRequest } from "./request.ts";

/** One thing that a policy says against a request. */
interface Denial {
  readonly message: string;
  readonly reason: string;
}

interface PlacedDenial extends Denial {
  readonly policyName: string;
  readonly bindingName: string | undefined;
}

/** Asks every policy about the request; throws the answer to one that is denied. */
export function validateRequest(deps: AdmissionDeps, hooks: readonly Hook[], request: PolicyRequest): void {
  const { invocations, failures } = findInvocations(deps, hooks, request);
  const denials: PlacedDenial[] = failures
    .filter(({ hook }) => hook.policy.spec?.failurePolicy !== "Ignore")
    .map(({ hook, binding, message }) => ({
      policyName: hook.name,
      bindingName: binding?.metadata.name,
      message,
      reason: "Invalid",
    }));
  const budget = new Budget(REQUEST_STEPS_MAX);
  for (const invocation of invocations) {
    const { compiled, binding } = invocation;
    const { name: bindingName = "" } = binding.metadata;
    for (const denial of denialsOf(invocation, invocation.activate(request, budget))) {
      const actions = binding.spec?.validationActions ?? [];
      // This server keeps no audit log, so that there is nowhere to write what `Audit` would.
      if (actions.includes("Warn")) {
        request.requester.warn(
          `Validation failed for ValidatingAdmissionPolicy '${compiled.name}' with binding '${bindingName}': ${denial.message}`,
        );
      }
      if (actions.includes("Deny")) denials.push({ ...denial, policyName: compiled.name, bindingName });
    }
  }
  const [first] = denials;
  if (first !== undefined) throw denied(request, first);
}

function denialsOf({ compiled, ...invocation }: Invocation, activation: Activation): Denial[] {
  const failed = (error: unknown): Denial[] => {
    if (!(error instanceof PolicyFailure)) throw error;
    return compiled.ignoresFailures ? [] : [{ message: error.message, reason: "Invalid" }];
  };
  try {
    if (!meetsConditions({ compiled, ...invocation }, activation)) return [];
  } catch (error) {
    return failed(error);
  }
  const attempt = (work: () => Denial[]): Denial[] => {
    try {
      return work();
    } catch (error) {
      return failed(error);
    }
  };
  return [
    ...compiled.validations.flatMap((one) => attempt(() => validate(one, activation))),
    // Evaluated though nobody reads them: one that fails is a failure of its policy.
    ...compiled.auditAnnotations.flatMap(({ program }) =>
      attempt(() => {
        activation.evaluate(program);
        return [];
      }),
    ),
  ];
}

function validate({ validation, program, message }: CompiledValidation, activation: Activation): Denial[] {
  if (activation.evaluate(program) === true) return [];
  const { reason = "Invalid", message: fixed = "", expression = "" } = validation;
  const text = messageFrom(message, activation) || fixed.trim() || `failed expression: ${expression.trim()}`;
  return [{ message: text, reason }];
}

/** What a client is shown at most. */
const MESSAGE_BYTES_MAX = 5 * 1_024;

/** Empty where it fails, is too long or has several lines: then the fixed message is taken. */
function messageFrom(program: Program | undefined, activation: Activation): string {
  if (program === undefined) return "";
  try {
    const value = activation.evaluate(program);
    const text = typeof value === "string" ? value.trim() : "";
    return Buffer.byteLength(text) > MESSAGE_BYTES_MAX || text.includes("\n") ? "" : text;
  } catch (error) {
    if (!(error instanceof PolicyFailure)) throw error;
    return "";
  }
}

const CODES: Readonly<Record<string, number>> = {
  Unauthorized: 401,
  Forbidden: 403,
  RequestEntityTooLarge: 413,
};

function denied({ resource, name }: PolicyRequest, denial: PlacedDenial): StatusError {
  const { policyName, bindingName, message, reason } = denial;
  const where = bindingName === undefined ? "" : ` with binding '${bindingName}'`;
  const text = `ValidatingAdmissionPolicy '${policyName}'${where} denied request: ${message}`;
  const { group, plural } = resource;
  return new StatusError(CODES[reason] ?? 422, `${resourceName(resource)} "${name}" is forbidden: ${text}`, {
    reason,
    details: {
      ...(name === "" ? {} : { name }),
      ...(group === "" ? {} : { group }),
      kind: plural,
      causes: [{ message: text }],
    },
  });
}
