import type { Secret as SecretV1 } from "kubernetes-types/core/v1.js";
import type { KubeObject, Resource } from "../object.ts";

export type Secret = SecretV1 & KubeObject;

export const secrets: Resource<Secret> = {
  group: "",
  version: "v1",
  kind: "Secret",
  plural: "secrets",
  namespaced: true,
};

/** A value of `data` as text; undefined if it is none. Read as text nevertheless, it would become another value. */
export function textOfSecret(base64: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(base64, "base64"));
  } catch {
    return undefined;
  }
}
