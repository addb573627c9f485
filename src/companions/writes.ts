import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeObject, Resource } from "../kube/object.ts";
import type { Outcome } from "../kube/workqueue/controller.ts";

/**
 * Changes the very version that was looked at, or nothing: a decision taken from an older one is refused with
 * `Conflict` and taken again. So it may also be sent twice.
 */
export function patchSeen<T extends KubeObject>(
  client: Pick<Client, "patch">,
  resource: Resource<T>,
  { metadata }: T,
  change: object,
  { subresource, signal }: { readonly subresource?: "status"; readonly signal: AbortSignal },
): Promise<T> {
  const { name = "", namespace, uid, resourceVersion } = metadata;
  const given = "metadata" in change ? (change.metadata as object) : {};
  const value = { ...change, metadata: { ...given, uid, resourceVersion } };
  return client.patch(
    resource,
    { name, namespace },
    { type: "merge", value },
    { subresource, repeatable: true, signal },
  );
}

/** Soon enough for a person, late enough for the watch to have brought what we did not know. */
export const STALE_RETRY_MS = 50;

/** The outcome of a look whose write found another version than the one looked at; undefined for other errors. */
export function staleOutcome(error: unknown): Outcome | undefined {
  return isKubeError(error, "Conflict", "NotFound", "AlreadyExists")
    ? { kind: "after", ms: STALE_RETRY_MS }
    : undefined;
}

/** What may be missing, as a value. */
export async function found<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}
