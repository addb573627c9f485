import type { DeleteOptions } from "../delete-options.ts";
import { conflict, StatusError } from "../errors.ts";
import { TRUSTED } from "../guard.ts";
import { parseStored, shorten, type ApiObject } from "../objects.ts";
import { CONTROLLER } from "../policies/request.ts";
import { replaceObject } from "../replace.ts";
import type { VerbDeps } from "../request.ts";
import type { StoredObject } from "../store/store.ts";
import { createObject } from "../verbs/create.ts";
import { deleteObject } from "../verbs/delete.ts";
import { kindOf } from "./served.ts";

/**
 * Controllers write as clients do, through the verbs: same rules, same events. The outcomes that are ordinary for them,
 * because others write too, come back as values.
 */
export type WriteResult = "written" | "gone" | "conflict";

/**
 * Changes the object exactly as it was seen; if it has been written since, that is a conflict, for the decision to
 * change it may no longer hold. `change` may return what it was given.
 */
export async function changeSeen(
  verbs: VerbDeps,
  seen: StoredObject,
  change: (object: ApiObject) => ApiObject,
  { subresource }: { readonly subresource?: "status" } = {},
): Promise<WriteResult> {
  const { key } = seen;
  const kind = kindOf(key.resource);
  const desire = (stored: ApiObject) => {
    if (stored.metadata.resourceVersion !== String(seen.revision)) throw conflict(kind, key.name);
    return shorten(kind, change(stored));
  };
  const requester = { ...CONTROLLER, subresource: subresource ?? "" };
  return outcomeOf(
    replaceObject(verbs, { kind, key, subresource, dryRun: false, rights: TRUSTED, requester, desire }),
  );
}

/** Deletes the object exactly as it was seen, likewise. */
export async function deleteSeen(
  verbs: VerbDeps,
  seen: StoredObject,
  propagationPolicy: DeleteOptions["propagationPolicy"] = "Background",
): Promise<WriteResult> {
  const options = {
    dryRun: false,
    gracePeriodSeconds: undefined,
    propagationPolicy,
    uid: uidOf(seen),
    resourceVersion: String(seen.revision),
  };
  return outcomeOf(
    deleteObject(verbs, kindOf(seen.key.resource), seen.key, { options, requester: CONTROLLER }),
  );
}

/** `conflict` when the name is taken, `gone` when its namespace is or soon will be. Of a cluster it is "". */
export async function createMissing(
  verbs: VerbDeps,
  resource: string,
  namespace: string,
  object: ApiObject,
): Promise<WriteResult> {
  const where = namespace === "" ? undefined : namespace;
  const creation = { namespace: where, object, dryRun: false, requester: CONTROLLER };
  return outcomeOf(createObject(verbs, kindOf(resource), creation));
}

/**
 * As many writes as a store that commits in groups puts into one go at no cost; enough to empty a namespace of
 * 10,000 objects in some 160 commits, and few enough that requests get their turn in between.
 */
const WRITES_AT_ONCE = 64;

/** Works on all items, some at a time; throws the first failure once every item has been tried. */
export async function forAll<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const failures: unknown[] = [];
  for (let start = 0; start < items.length; start += WRITES_AT_ONCE) {
    const results = await Promise.allSettled(items.slice(start, start + WRITES_AT_ONCE).map(work));
    for (const result of results) if (result.status === "rejected") failures.push(result.reason);
  }
  if (failures.length > 0) throw failures[0];
}

export function withoutFinalizer(object: ApiObject, name: string): ApiObject {
  const { finalizers = [] } = object.metadata;
  return {
    ...object,
    metadata: { ...object.metadata, finalizers: finalizers.filter((finalizer) => finalizer !== name) },
  };
}

function uidOf(stored: StoredObject): string | undefined {
  return parseStored(stored).metadata.uid;
}

async function outcomeOf(write: Promise<unknown>): Promise<WriteResult> {
  try {
    await write;
    return "written";
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const { code, reason, details } = error.status;
    if (reason === "NotFound") return "gone";
    if (details?.causes?.some((cause) => cause.reason === "NamespaceTerminating")) return "gone";
    if (code === 409) return "conflict";
    throw error;
  }
}
