import { admissionDeps } from "../admission.ts";
import { parseDeleteOptions, type DeleteOptions } from "../delete-options.ts";
import { planDeletion, type Deletion } from "../deletion.ts";
import { conflict, forbidden, notFound, preconditionFailed, StatusError } from "../errors.ts";
import { namespaces, type Kind } from "../kinds.ts";
import { PROTECTED_NAMESPACES } from "../namespaces.ts";
import { parseStored, renderObject, shortForm, type ApiObject } from "../objects.ts";
import { validateDeletion } from "../policies/admission.ts";
import type { Requester } from "../policies/request.ts";
import { jsonResponse, keyFor, requesterOf, type Verb, type VerbDeps } from "../request.ts";
import type { StoreKey, StoredObject } from "../store/store.ts";

/** Others may write the object while we decide; each time it is looked at afresh. */
const DELETE_TRIES = 10;

export const deleteOne: Verb = async (deps, request) => {
  const { kind, namespace, name } = request;
  const options = parseDeleteOptions(request);
  if (kind === namespaces && PROTECTED_NAMESPACES.includes(name)) {
    throw forbidden(kind, name, "this namespace may not be deleted");
  }
  const requester = requesterOf(request, options);
  return jsonResponse(
    200,
    await deleteObject(deps, kind, keyFor(kind, namespace, name), { options, requester }),
  );
};

/** What deleting means for an object as it is; asked again after a conflict. */
type PlanDeletion = (stored: StoredObject) => Deletion;

export interface DeleteRequest {
  readonly options: DeleteOptions;
  /** For admission policies; absent where somebody else has asked them. */
  readonly requester?: Requester | undefined;
  readonly plan?: PlanDeletion;
}

/** Deletes, or marks for deletion, and returns the text to answer with. */
export async function deleteObject(
  deps: VerbDeps,
  kind: Kind,
  key: StoreKey,
  { options, requester, plan = usualPlan(deps, kind, options) }: DeleteRequest,
): Promise<string> {
  for (let attempt = 0; attempt < DELETE_TRIES; attempt++) {
    const stored = deps.store.get(key);
    if (stored === undefined) throw notFound(kind, key.name);
    checkPreconditions(kind, stored, options);
    validateDeletion(admissionDeps(deps), deps.store, {
      kind,
      object: () => shortForm(kind, stored),
      requester,
    });
    const text = await carryOut(deps, kind, { stored, plan: plan(stored), dryRun: options.dryRun });
    if (text !== undefined) return text;
  }
  throw conflict(kind, key.name);
}

function usualPlan({ clock }: VerbDeps, kind: Kind, options: DeleteOptions): PlanDeletion {
  return (stored) => planDeletion(kind, parseStored(stored), options, clock.wall());
}

/** Undefined when somebody else wrote in between. */
async function carryOut(
  deps: VerbDeps,
  kind: Kind,
  { stored, plan, dryRun }: { stored: StoredObject; plan: Deletion; dryRun: boolean },
): Promise<string | undefined> {
  const current = parseStored(stored);
  if (plan.kind === "nothing") return stored.text;
  if (plan.kind === "mark") return mark(deps, kind, { stored, next: plan.next, dryRun });
  if (dryRun) return answerText(kind, plan.answer, stored.revision);
  const lastWords = (revision: number) => renderObject(kind, current, revision);
  const outcome = await deps.store.delete(stored.key, lastWords, { expected: stored.revision });
  if (outcome.kind === "conflict") return undefined;
  return answerText(kind, plan.answer, outcome.object.revision);
}

async function mark(
  deps: VerbDeps,
  kind: Kind,
  { stored, next, dryRun }: { stored: StoredObject; next: ApiObject; dryRun: boolean },
): Promise<string | undefined> {
  if (dryRun) return renderObject(kind, next, stored.revision);
  const render = (revision: number) => renderObject(kind, next, revision);
  const outcome = await deps.store.update(stored.key, render, { expected: stored.revision });
  if (outcome.kind === "conflict") return undefined;
  return outcome.object.text;
}

/** For deletions of many, where one that is gone already is as good as deleted. */
export async function deleteIfThere(
  deps: VerbDeps,
  kind: Kind,
  key: StoreKey,
  request: DeleteRequest,
): Promise<void> {
  try {
    await deleteObject(deps, kind, key, request);
  } catch (error) {
    if (!(error instanceof StatusError && error.status.reason === "NotFound")) throw error;
  }
}

function answerText(kind: Kind, object: ApiObject, revision: number): string {
  if (kind.deleteAnswer === "object") return renderObject(kind, object, revision);
  const { name, uid } = object.metadata;
  const details = { name, ...(kind.group === "" ? {} : { group: kind.group }), kind: kind.plural, uid };
  return JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details });
}

function checkPreconditions(kind: Kind, stored: StoredObject, { uid, resourceVersion }: DeleteOptions): void {
  const { metadata } = parseStored(stored);
  const name = stored.key.name;
  if (uid !== undefined && uid !== metadata.uid) {
    throw preconditionFailed(
      kind,
      name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid ?? ""}). ` +
        "The object might have been deleted and then recreated",
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw preconditionFailed(
      kind,
      name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record ` +
        `(${metadata.resourceVersion ?? ""}). The object might have been modified`,
    );
  }
}
