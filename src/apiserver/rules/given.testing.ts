import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { assert } from "../../base/assert.ts";
import { KINDS, type Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "./admission.ts";
import { rulesFor } from "./rules.ts";

/** For tests: short ways to make objects and to ask the rules about them. */

export const NOW = new Date("2026-03-04T05:06:07.890Z");
export const NOW_TEXT = "2026-03-04T05:06:07Z";

export function kindOf(name: string): Kind {
  const found = KINDS.find(({ kind }) => kind === name);
  assert(found !== undefined, `no kind ${name}`);
  return found;
}

/** An object named `x`, in namespace `t` where its kind has one. */
export function given(
  name: string,
  members: Readonly<Record<string, unknown>> = {},
  metadata: ObjectMeta = {},
): ApiObject {
  const home = kindOf(name).namespaced ? { namespace: "t" } : {};
  return { ...members, metadata: { name: "x", ...home, ...metadata } };
}

/** As it would be stored: completed, and nothing wrong with it. */
export function stored(
  name: string,
  members: Readonly<Record<string, unknown>> = {},
  metadata: ObjectMeta = {},
): ApiObject {
  const rules = rulesFor(kindOf(name));
  const object = rules.prepareCreate(rules.applyDefaults(given(name, members, metadata)), { now: NOW });
  const causes = rules.validateCreate(object);
  assert(causes.length === 0, `the test's own ${name} is invalid: ${JSON.stringify(causes)}`);
  return object;
}

/** What is wrong with creating it, as `Required spec.attacher`. */
export function creating(
  name: string,
  members: Readonly<Record<string, unknown>>,
  metadata: ObjectMeta = {},
): string[] {
  const rules = rulesFor(kindOf(name));
  const object = rules.applyDefaults(given(name, members, metadata));
  return rules.validateCreate(rules.prepareCreate(object, { now: NOW })).map(lineOf);
}

/** What is wrong with putting `wanted` in the place of `old`. */
export function changing(name: string, old: ApiObject, wanted: ApiObject): string[] {
  const rules = rulesFor(kindOf(name));
  const object = rules.prepareUpdate(rules.applyDefaults(wanted), old, { now: NOW });
  return rules.validateUpdate(object, old).map(lineOf);
}

function lineOf({ reason, field }: { reason: string; field: string }): string {
  return `${reason.slice("FieldValue".length)} ${field}`;
}

/** Admission in a world of these objects, given with their resource: `{ namespaces: [...] }`. */
export function admissionDeps(objects: Readonly<Record<string, readonly ApiObject[]>>): AdmissionDeps {
  return {
    getObject: (resource, namespace, name) =>
      objects[resource]?.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace),
    listObjects: (resource, namespace) =>
      (objects[resource] ?? []).filter(
        ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
      ),
    random: createSeededRandom("admission"),
  };
}
