import { resourceName } from "../../kube/object.ts";
import { fromLabelSelectorObject, matchesLabels } from "../../kube/selectors.ts";
import { findType } from "../controllers/served.ts";
import { storedKind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "../rules/admission.ts";
import { PolicyFailure } from "./activation.ts";
import type { ParamKind, ParamRef } from "./policy.ts";
import { shownObject } from "./request.ts";

/**
 * The objects that a binding gives its policy as `params`, which is asked once for each of them. Undefined stands for
 * none being used. None found is an empty list, for which nobody is asked, or a failure where the binding says Deny.
 */
export function collectParams(
  deps: AdmissionDeps,
  paramKind: ParamKind | undefined,
  paramRef: ParamRef | undefined,
  namespace: string,
): readonly (ApiObject | undefined)[] {
  if (paramKind === undefined || paramRef === undefined) return [undefined];
  const { apiVersion = "", kind = "" } = paramKind;
  const served = findType(apiVersion, kind);
  if (served === undefined) {
    throw new PolicyFailure(
      `failed to configure binding: paramKind kind \`${apiVersion}, Kind=${kind}\` not known`,
    );
  }
  const { name = "", namespace: named = "", selector, parameterNotFoundAction } = paramRef;
  if (!served.namespaced && named !== "") {
    throw new PolicyFailure(
      "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
    );
  }
  const home = served.namespaced ? named || namespace : undefined;
  if (home === "") {
    throw new PolicyFailure(
      "failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
    );
  }
  const resource = resourceName(storedKind(served));
  const found =
    name !== ""
      ? [deps.getObject(resource, home, name)]
      : [...deps.listObjects(resource, home)].filter(({ metadata }) =>
          matchesLabels(fromLabelSelectorObject(selector ?? {}), metadata.labels),
        );
  const params = found.flatMap((object) =>
    object === undefined ? [] : [shownObject(storedKind(served), object)],
  );
  if (params.length === 0 && parameterNotFoundAction === "Deny") {
    throw new PolicyFailure(
      "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
    );
  }
  return params;
}
