import type { LabelSelectorObject } from "../../kube/selectors.ts";
import type { ApiObject } from "../objects.ts";

/**
 * Admission policies as they are stored: what their rules made sure of is there, everything else may be absent
 * (admissionregistration.k8s.io/v1).
 */
export interface Policy extends ApiObject {
  readonly spec?: PolicySpec;
}

export interface PolicySpec {
  readonly paramKind?: ParamKind;
  readonly matchConstraints?: MatchResources;
  readonly matchConditions?: readonly NamedExpression[];
  readonly variables?: readonly NamedExpression[];
  readonly failurePolicy?: string;
  /** Of a ValidatingAdmissionPolicy. */
  readonly validations?: readonly Validation[];
  readonly auditAnnotations?: readonly { readonly key?: string; readonly valueExpression?: string }[];
  /** Of a MutatingAdmissionPolicy. */
  readonly mutations?: readonly Mutation[];
  readonly reinvocationPolicy?: string;
}

export interface NamedExpression {
  readonly name?: string;
  readonly expression?: string;
}

export interface Validation {
  readonly expression?: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
}

export interface Mutation {
  readonly patchType?: string;
  readonly applyConfiguration?: { readonly expression?: string };
  readonly jsonPatch?: { readonly expression?: string };
}

export interface ParamKind {
  readonly apiVersion?: string;
  readonly kind?: string;
}

export interface MatchResources {
  readonly namespaceSelector?: LabelSelectorObject;
  readonly objectSelector?: LabelSelectorObject;
  readonly resourceRules?: readonly ResourceRule[];
  readonly excludeResourceRules?: readonly ResourceRule[];
  readonly matchPolicy?: string;
}

export interface ResourceRule {
  readonly resourceNames?: readonly string[];
  readonly operations?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly resources?: readonly string[];
  readonly scope?: string;
}

export interface Binding extends ApiObject {
  readonly spec?: BindingSpec;
}

interface BindingSpec {
  readonly policyName?: string;
  readonly paramRef?: ParamRef;
  readonly matchResources?: MatchResources;
  /** Of a ValidatingAdmissionPolicyBinding: Deny, Warn, Audit. */
  readonly validationActions?: readonly string[];
}

export interface ParamRef {
  readonly name?: string;
  readonly namespace?: string;
  readonly selector?: LabelSelectorObject;
  readonly parameterNotFoundAction?: string;
}
