import { isSameButTimes, withManagedFields } from "./apply/managed-fields.ts";
import { badRequest, conflict, invalid, notFound } from "./errors.ts";
import type { Rights } from "./guard.ts";
import type { Kind } from "./kinds.ts";
import { parseStored, renderObject, shorten, shortForm, type ApiObject } from "./objects.ts";
import { isFinished, prepareUpdate } from "./prepare.ts";
import { reserve } from "./quotas.ts";
import type { Requester } from "./policies/request.ts";
import type { PodPart, VerbDeps } from "./request.ts";
import type { StoredObject, StoreKey } from "./store/store.ts";
import { untracked, type Track } from "./tracking.ts";
import { holdAllocated } from "./under-way.ts";

/** Tries at a write that names no version and keeps meeting others; with none in between it is one. */
const REPLACE_TRIES = 5;

export interface Change {
  readonly kind: Kind;
  readonly key: StoreKey;
  readonly dryRun: boolean;
  readonly rights: Rights;
  /** What takes the place of `current`, both in short form; it may refuse by throwing. Asked again after a conflict. */
  readonly decide: (current: ApiObject, stored: StoredObject) => ApiObject;
}

/**
 * Read, decide, compare and swap: the one path by which an object is changed. Returns its text. A result equal
 * to what is stored is not written: no revision, no event.
 */
export async function changeObject(deps: VerbDeps, change: Change): Promise<string> {
  const { kind, key } = change;
  for (let attempt = 0; attempt < REPLACE_TRIES; attempt++) {
    const stored = deps.store.get(key);
    if (stored === undefined) throw notFound(kind, key.name);
    const current = shortForm(kind, stored);
    const next = shorten(kind, change.decide(current, stored));
    change.rights.checkWrite(next, current);
    const text = await store(deps, change, { stored, current, next });
    if (text !== undefined) return text;
  }
  throw conflict(kind, key.name);
}

export interface Replacement extends Omit<Change, "decide"> {
  readonly subresource: "status" | undefined;
  readonly part?: PodPart | undefined;
  readonly isPatch?: boolean;
  /** For admission policies; absent where somebody else has asked them. */
  readonly requester?: Requester;
  readonly track?: Track;
  /** What the client wants instead of the object as it is sent, in short form. */
  readonly desire: (stored: ApiObject) => ApiObject;
}

/** PUT and PATCH: what the client wants, with the rules of its kind applied. */
export function replaceObject(
  deps: VerbDeps,
  { subresource, part, desire, isPatch = false, track = untracked, requester, ...change }: Replacement,
): Promise<string> {
  const { kind } = change;
  return changeObject(deps, {
    ...change,
    decide(current, stored) {
      const desired = desire(parseStored(stored));
      checkVersion(kind, current, desired, isPatch);
      const next = prepareUpdate(deps, kind, { current, desired, subresource, part, requester });
      return withManagedFields(next, track(current, desired));
    },
  });
}

/** Undefined when somebody else wrote in between. */
async function store(
  deps: VerbDeps,
  { kind, key, dryRun }: Change,
  { stored, current, next }: { stored: StoredObject; current: ApiObject; next: ApiObject },
): Promise<string | undefined> {
  const condition = { expected: stored.revision };
  if (isFinished(kind, next)) {
    // Its last words are the state before: watchers see the finalizer that was just taken away.
    const lastWords = (revision: number) => renderObject(kind, current, revision);
    if (!dryRun && (await deps.store.delete(key, lastWords, condition)).kind === "conflict") return undefined;
    return renderObject(kind, next, stored.revision);
  }
  if (isSameButTimes(current, next)) return stored.text;
  const reservation = reserve(deps, kind, { key, object: next, replaced: stored });
  const letGo = holdAllocated(deps.store, kind, next);
  try {
    if (dryRun) return renderObject(kind, next, stored.revision);
    const outcome = await deps.store.update(key, (revision) => renderObject(kind, next, revision), condition);
    if (outcome.kind === "conflict") return undefined;
    await reservation?.settle();
    return outcome.object.text;
  } finally {
    letGo();
    reservation?.release();
  }
}

/** A version or uid in the request is a precondition; "" and "0" are none. */
function checkVersion(kind: Kind, current: ApiObject, { metadata }: ApiObject, isPatch: boolean): void {
  const { name = "", resourceVersion = "", uid = "" } = metadata;
  if (uid !== "" && uid !== current.metadata.uid) throw otherUid(kind, current, uid, isPatch);
  if (resourceVersion === "" || resourceVersion === "0") return;
  if (!/^[0-9]+$/.test(resourceVersion)) {
    throw badRequest(
      `metadata.resourceVersion: Invalid value: ${JSON.stringify(resourceVersion)}: it must be a decimal number`,
    );
  }
  if (resourceVersion !== current.metadata.resourceVersion) throw conflict(kind, name);
}

/** Whoever puts an object with another uid means another object; whoever patches the uid wants to change it. */
function otherUid(kind: Kind, { metadata }: ApiObject, uid: string, isPatch: boolean) {
  const { name = "", uid: stored = "" } = metadata;
  if (!isPatch) {
    return conflict(
      kind,
      name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${stored}`,
    );
  }
  const message = `Invalid value: ${JSON.stringify(uid)}: field is immutable`;
  return invalid(kind, name, [{ field: "metadata.uid", reason: "FieldValueInvalid", message }]);
}
