import type { ApiObject } from "../objects.ts";
import { toNewEvent } from "../rules/event-spelling.ts";
import { knownSchema } from "../schema/schema.ts";
import { EMPTY, renameFields, type FieldSet } from "./field-set.ts";
import { fieldElement, type PathElement } from "./path-element.ts";

const CORE = "v1";
const NEW = "events.k8s.io/v1";

/**
 * Fields of one version of the API in the words of another. Only events have two versions, which differ in names
 * alone; undefined for a version we do not know.
 */
export function translate(
  fields: FieldSet,
  { kind, from, to }: { readonly kind: string; readonly from: string; readonly to: string },
): FieldSet | undefined {
  if (from === to) return fields;
  if (kind !== "Event" || ![from, to].every((version) => version === CORE || version === NEW))
    return undefined;
  if (fields === EMPTY) return fields;
  const names = from === CORE ? eventNames().toNew : eventNames().toCore;
  return renameFields(fields, (element) => names.get(element) ?? element);
}

interface EventNames {
  readonly toNew: ReadonlyMap<PathElement, PathElement>;
  readonly toCore: ReadonlyMap<PathElement, PathElement>;
}

let known: EventNames | undefined;

function eventNames(): EventNames {
  return (known ??= findEventNames());
}

/** An event that has every field, each holding its own name, shows what becomes of the names. */
function findEventNames(): EventNames {
  const { fields } = knownSchema({ group: "", version: "v1", kind: "Event" });
  const core = Object.fromEntries(fields.map(({ name }) => [name, name])) as unknown as ApiObject;
  const pairs = Object.entries(toNewEvent(core)).map(
    ([name, old]) => [fieldElement(String(old)), fieldElement(name)] as const,
  );
  return { toNew: new Map(pairs), toCore: new Map(pairs.map(([old, name]) => [name, old])) };
}
