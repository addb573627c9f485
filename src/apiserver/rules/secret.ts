import type { Secret } from "kubernetes-types/core/v1.js";
import { forbiddenField, IMMUTABLE, invalidValue, required, tooLong, type Cause } from "./causes.ts";
import { DATA_BYTES_MAX, decodedBytes, FROZEN, keyCauses, sum } from "./config-map.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, without, type LooseObject } from "./loose.ts";
import { sameValue } from "./quantities.ts";

type SecretObject = LooseObject<Secret>;

export const secretRules: RuleParts<SecretObject> = {
  applyDefaults: (object) => withDefaults(foldStringData(object), { type: "Opaque" }),

  validate(object) {
    const { data = {} } = object;
    return [
      ...Object.keys(data).flatMap((key) => keyCauses("data", key)),
      ...(sum(Object.values(data), decodedBytes) > DATA_BYTES_MAX ? [tooLong("data", DATA_BYTES_MAX)] : []),
      ...validateType(object),
    ];
  },

  validateChange(object, old) {
    const frozen = old.immutable === true;
    return [
      ...(object.type === old.type ? [] : [invalidValue("type", object.type, IMMUTABLE)]),
      ...(frozen && object.immutable !== true ? [forbiddenField("immutable", FROZEN)] : []),
      ...(frozen && !sameValue(object.data, old.data) ? [forbiddenField("data", FROZEN)] : []),
    ];
  },
};

/** `stringData` is for writing only: it overwrites `data` and is never stored or returned. */
function foldStringData(object: SecretObject): SecretObject {
  const { stringData } = object;
  if (stringData === undefined) return object;
  const encoded = Object.entries(stringData).map(
    ([key, text = ""]) => [key, Buffer.from(text).toString("base64")] as const,
  );
  return { ...without(object, "stringData"), data: { ...object.data, ...Object.fromEntries(encoded) } };
}

/** Keys without which a secret of a type is of no use to those who look for that type. */
const REQUIRED_KEYS: ReadonlyMap<string, readonly string[]> = new Map([
  ["kubernetes.io/dockercfg", [".dockercfg"]],
  ["kubernetes.io/dockerconfigjson", [".dockerconfigjson"]],
  ["kubernetes.io/ssh-auth", ["ssh-privatekey"]],
  ["kubernetes.io/tls", ["tls.crt", "tls.key"]],
]);

const ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name";

function validateType({ type = "", data = {}, metadata }: SecretObject): Cause[] {
  const isMissing = (key: string) => !Object.hasOwn(data, key);
  if (type === "kubernetes.io/service-account-token") {
    const account = metadata.annotations?.[ACCOUNT_ANNOTATION] ?? "";
    return account === "" ? [required(`metadata.annotations[${ACCOUNT_ANNOTATION}]`)] : [];
  }
  if (type === "kubernetes.io/basic-auth") {
    const neither = isMissing("username") && isMissing("password");
    return neither ? [required("data[username]"), required("data[password]")] : [];
  }
  return (REQUIRED_KEYS.get(type) ?? []).filter(isMissing).map((key) => required(`data[${key}]`));
}
