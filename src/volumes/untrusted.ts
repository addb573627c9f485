import type { ObjectMeta } from "kubernetes-types/meta/v1.js";

/*
 * Objects come as anybody wrote them: their types say what a server that validates would let through, and not
 * every server does. What is not of its type counts as absent, here and never by a crash further in.
 */

export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Empty for what is no text. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function metadataOf(object: { readonly metadata: ObjectMeta }): ObjectMeta {
  return isObject(object.metadata) ? object.metadata : {};
}
