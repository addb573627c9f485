import type { Kind } from "../../apiserver/kinds.ts";
import type { ApiObject } from "../../apiserver/objects.ts";
import { rulesFor } from "../../apiserver/rules/rules.ts";
import { DecodeFailure } from "../../apiserver/schema/decode-failure.ts";
import { decodeFields } from "../../apiserver/schema/decode.ts";
import { knownSchema } from "../../apiserver/schema/schema.ts";

/** One thing that the server would say of a field. */
export interface FieldFault {
  /** `spec.containers[0].name`; empty where it is the object as a whole. */
  readonly field: string;
  readonly message: string;
}

/**
 * What the embedded server would refuse in an object, or take without doing anything for it, as far as the object alone
 * tells: types, fields that do not exist, values. What depends on others (a claim of that name, a default account) is left
 * to the server. `isWhole`: not a later change of an object that the file has already made, which may leave out most of it.
 */
export function faultsOf(
  kind: Kind,
  value: object,
  { isWhole }: { readonly isWhole: boolean },
): readonly FieldFault[] {
  try {
    const { object, unknown } = decodeFields(knownSchema(kind), value);
    const strangers = unknown.map((field) => ({
      field,
      message: `there is no such field in a ${kind.kind}`,
    }));
    if (strangers.length > 0 || !isWhole) return strangers;
    return refusalsOf(kind, object as unknown as ApiObject);
  } catch (error) {
    if (!(error instanceof DecodeFailure)) throw error;
    return [{ field: error.path ?? "", message: error.message }];
  }
}

/** Admission gives a pod its account before it is judged, and tokens are only for pods that have one. */
function admitted(kind: Kind, object: ApiObject): ApiObject {
  if (kind.group !== "" || kind.kind !== "Pod") return object;
  return { ...object, spec: { serviceAccountName: "default", ...(object["spec"] as object | undefined) } };
}

/** The moment is only for fields that say when something was made, which no rule looks at. */
const SOME_MOMENT = { now: new Date(0) };

function refusalsOf(kind: Kind, object: ApiObject): readonly FieldFault[] {
  const rules = rulesFor(kind);
  const prepared = rules.prepareCreate(admitted(kind, rules.applyDefaults(object)), SOME_MOMENT);
  return rules.validateCreate(prepared).map(({ field, message }) => ({ field, message }));
}
