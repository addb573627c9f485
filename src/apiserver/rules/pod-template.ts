import type { PodTemplateSpec } from "kubernetes-types/core/v1.js";
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import { fromLabelSelectorObject, matchesLabels, type LabelSelectorObject } from "../../kube/selectors.ts";
import {
  causeIf,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  type Cause,
  type Causes,
} from "./causes.ts";
import type { Loose } from "./loose.ts";
import { validateAnnotations, validateLabels } from "./metadata.ts";
import { validatePodSpec } from "./pod-spec.ts";
import { validateLabelSelector } from "./selectors.ts";

/** The pod that something else makes: everything a pod is held to, but for its name. */
export function validatePodTemplate(field: string, template: Loose<PodTemplateSpec> = {}): Cause[] {
  const { labels, annotations } = template.metadata ?? {};
  return [
    ...validateLabels(`${field}.metadata.labels`, labels),
    ...validateAnnotations(`${field}.metadata.annotations`, annotations),
    ...validatePodSpec(`${field}.spec`, template.spec ?? {}, ""),
  ];
}

/** Of what keeps pods running: they are started again, and have no time limit. */
export function validateRunningTemplate(
  field: string,
  template: Loose<PodTemplateSpec> = {},
  { owner }: { readonly owner: string },
): Cause[] {
  const { restartPolicy, activeDeadlineSeconds } = template.spec ?? {};
  const policy = `${field}.spec.restartPolicy`;
  return [
    ...validatePodTemplate(field, template),
    ...causeIf(
      restartPolicy !== undefined && restartPolicy !== "Always",
      notSupported(policy, restartPolicy, ["Always"]),
    ),
    ...causeIf(
      activeDeadlineSeconds !== undefined,
      forbiddenField(
        `${field}.spec.activeDeadlineSeconds`,
        `activeDeadlineSeconds in ${owner} is not Supported`,
      ),
    ),
  ];
}

/** A selector that is there, says something, and finds the pods of the template. */
export function validateSelects(
  selector: Loose<LabelSelector> | undefined,
  template: Loose<PodTemplateSpec> | undefined,
  { owner }: { readonly owner: string },
): Causes {
  if (selector === undefined) return [required("spec.selector")];
  const causes = validateLabelSelector("spec.selector", selector);
  const { matchLabels = {}, matchExpressions = [] } = selector;
  if (Object.keys(matchLabels).length === 0 && matchExpressions.length === 0) {
    return [...causes, invalidValue("spec.selector", selector, `empty selector is invalid for ${owner}`)];
  }
  if (causes.length > 0) return causes;
  const labels = (template?.metadata?.labels ?? {}) as Readonly<Record<string, string>>;
  return causeIf(
    !matchesLabels(fromLabelSelectorObject(selector as LabelSelectorObject), labels),
    invalidValue("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
  );
}
