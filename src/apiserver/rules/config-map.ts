import type { ConfigMap } from "kubernetes-types/core/v1.js";
import { forbiddenField, invalidFor, invalidValue, tooLong, type Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import type { LooseObject } from "./loose.ts";
import { sameValue } from "./quantities.ts";
import { configKeyProblems } from "./text-rules.ts";

/** Of all values together, as bytes: what a node can be expected to hold for each pod that mounts it. */
export const DATA_BYTES_MAX = 1_024 * 1_024;

export const FROZEN = "field is immutable when `immutable` is set";

type ConfigMapObject = LooseObject<ConfigMap>;

export const configMapRules: RuleParts<ConfigMapObject> = {
  validate({ data = {}, binaryData = {} }) {
    const bytes = sum(Object.values(data), textBytes) + sum(Object.values(binaryData), decodedBytes);
    return [
      ...Object.keys(data).flatMap((key) => keyCauses("data", key)),
      ...Object.keys(binaryData).flatMap((key) => keyCauses("binaryData", key)),
      ...Object.keys(data)
        .filter((key) => Object.hasOwn(binaryData, key))
        .map((key) => invalidValue(`data[${key}]`, key, "duplicate of key present in binaryData")),
      // The real server has no field for the whole object and prints it so.
      ...(bytes > DATA_BYTES_MAX ? [tooLong("[]", DATA_BYTES_MAX)] : []),
    ];
  },

  validateChange(object, old) {
    if (old.immutable !== true) return [];
    return [
      ...(object.immutable === true ? [] : [forbiddenField("immutable", FROZEN)]),
      ...(sameValue(object.data, old.data) ? [] : [forbiddenField("data", FROZEN)]),
      ...(sameValue(object.binaryData, old.binaryData) ? [] : [forbiddenField("binaryData", FROZEN)]),
    ];
  },
};

export function keyCauses(field: string, key: string): Cause[] {
  return invalidFor(`${field}[${key}]`, key, configKeyProblems(key));
}

export function sum<T>(items: readonly T[], sizeOf: (item: T) => number): number {
  return items.reduce((total, item) => total + sizeOf(item), 0);
}

/** Of base64 text, without decoding it. */
export function decodedBytes(base64 = ""): number {
  return Buffer.byteLength(base64, "base64");
}

function textBytes(text = ""): number {
  return Buffer.byteLength(text);
}
