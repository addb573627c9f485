import { uuid } from "../../base/random.ts";
import { alreadyExists, badRequest, invalid, StatusError } from "../errors.ts";
import type { Rights } from "../guard.ts";
import type { Kind } from "../kinds.ts";
import { generateName } from "../names.ts";
import { parseStored, renderObject, type ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import { withManagedFields } from "../apply/managed-fields.ts";
import type { Requester } from "../policies/request.ts";
import { prepareCreate } from "../prepare.ts";
import { awaitPrerequisites } from "../prerequisites.ts";
import { reserve } from "../quotas.ts";
import { keyFor, objectResponse, requesterOf, type Verb, type VerbDeps } from "../request.ts";
import { decodeBody } from "../schema/body.ts";
import { toKept } from "../spelling.ts";
import type { StoredObject } from "../store/store.ts";
import { trackWrites, untracked, type Track } from "../tracking.ts";
import { holdAllocated } from "../under-way.ts";

/** Tries at a generated name that is free; at a million objects under one prefix all eight fail once in 10^9. */
const GENERATE_TRIES = 8;

export const create: Verb = async (deps, request) => {
  const { kind, namespace, query, headers, body, rights } = request;
  const { dryRun, fieldValidation, fieldManager } = parseWriteOptions(query, "CreateOptions");
  const { object: decoded, warnings } = decodeBody(kind, { headers, body }, fieldValidation);
  const object = toKept(kind, decoded);
  checkNamespace(object, namespace);
  const track = trackWrites(deps, request, fieldManager);
  return objectResponse(
    201,
    await createObject(deps, kind, {
      namespace,
      object,
      dryRun,
      rights,
      track,
      requester: requesterOf(request, { dryRun }),
    }),
    warnings,
  );
};

/** Stores a new object and returns its text. */
export async function createObject(deps: VerbDeps, kind: Kind, creation: NewObject): Promise<string> {
  const { object } = creation;
  const { name = "", generateName: prefix = "", resourceVersion = "" } = object.metadata;
  if (resourceVersion !== "") throw badRequest("resourceVersion should not be set on objects to be created");
  await awaitPrerequisites(deps, kind, creation);
  if (name !== "") return createNamed(deps, kind, { ...creation, name });
  if (prefix === "") {
    const message = "Required value: name or generateName is required";
    throw invalid(kind, "", [{ field: "metadata.name", reason: "FieldValueRequired", message }]);
  }
  return createGenerated(deps, kind, { ...creation, prefix });
}

/** The namespace of a body may be left out, but must not contradict the path. */
export function checkNamespace({ metadata }: ApiObject, namespace: string | undefined): void {
  if (metadata.namespace === undefined || metadata.namespace === "" || metadata.namespace === namespace)
    return;
  throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

interface NewObject {
  readonly namespace: string | undefined;
  readonly object: ApiObject;
  readonly dryRun: boolean;
  /** Absent where the server itself creates. */
  readonly rights?: Rights;
  readonly track?: Track;
  /** For admission policies; absent for what the server needs to be able to start. */
  readonly requester?: Requester;
}

async function createNamed(
  deps: VerbDeps,
  kind: Kind,
  { namespace, object, dryRun, rights, track = untracked, requester, name }: NewObject & { name: string },
): Promise<string> {
  const { store } = deps;
  const key = keyFor(kind, namespace, name);
  const uid = uuid(deps.random);
  const prepared = withManagedFields(
    prepareCreate(deps, kind, object, { name, namespace, uid }, requester),
    track(undefined, object),
  );
  rights?.checkWrite(prepared);
  const reservation =
    store.get(key) === undefined ? reserve(deps, kind, { key, object: prepared }) : undefined;
  const letGo = holdAllocated(store, kind, prepared);
  try {
    if (dryRun && store.get(key) === undefined) return renderObject(kind, prepared, undefined);
    const outcome = await store.create(key, (revision) => renderObject(kind, prepared, revision));
    if (outcome.kind === "committed") {
      await reservation?.settle();
      return outcome.object.text;
    }
    throw takenBy(kind, name, outcome.object);
  } finally {
    letGo();
    reservation?.release();
  }
}

function takenBy(kind: Kind, name: string, there: StoredObject): StatusError {
  const isTerminating = parseStored(there).metadata.deletionTimestamp !== undefined;
  return alreadyExists(kind, name, { isTerminating });
}

async function createGenerated(
  deps: VerbDeps,
  kind: Kind,
  { prefix, ...rest }: NewObject & { prefix: string },
): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await createNamed(deps, kind, { ...rest, name: generateName(prefix, deps.random) });
    } catch (error) {
      const isTaken = error instanceof StatusError && error.status.reason === "AlreadyExists";
      if (!isTaken || attempt >= GENERATE_TRIES) throw error;
    }
  }
}
