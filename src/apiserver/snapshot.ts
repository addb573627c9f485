import { withDeadline } from "../base/clock.ts";
import { badRequest, expired, shuttingDown, versionTooLarge } from "./errors.ts";
import type { ListOptions } from "./options.ts";
import type { VerbDeps } from "./request.ts";

/** Which state a list shows, and where in it the list begins (spec/apiserver.md, section 8.1). */
export interface Snapshot {
  readonly revision: number;
  readonly from: string | undefined;
  readonly limit: number | undefined;
}

/** How long a read waits for a version that is not here yet. */
const REACH_MS = 3_000;

export async function chooseSnapshot(
  deps: VerbDeps,
  options: ListOptions,
  signal: AbortSignal,
): Promise<Snapshot> {
  const { store } = deps;
  const { limit, match, resourceVersion = 0 } = options;
  if (options.continue !== undefined) return resumeSnapshot(deps, options.continue, limit);
  if (options.resourceVersion === undefined) return { revision: store.revision, from: undefined, limit };
  await reachVersion(deps, resourceVersion, signal);
  // "0" asks for any state at all; the real server answers from a cache that knows no pages.
  if (resourceVersion === 0) return { revision: store.revision, from: undefined, limit: undefined };
  const isExact = match === "Exact" || (match === undefined && limit !== undefined);
  if (!isExact) return { revision: store.revision, from: undefined, limit };
  if (resourceVersion < store.compactedRevision) {
    throw expired("The resourceVersion for the provided list is too old.");
  }
  return { revision: resourceVersion, from: undefined, limit };
}

/** Waits until the store has seen `revision`; 504 in the form that clients recognise when it does not come. */
export async function reachVersion(
  { store, clock }: VerbDeps,
  revision: number,
  signal: AbortSignal,
): Promise<void> {
  if (revision <= store.revision) return;
  try {
    await withDeadline(
      clock,
      { ms: REACH_MS, signal, onDeadline: () => versionTooLarge(revision, store.revision) },
      (deadline) => store.reach(revision, deadline),
    );
  } catch (error) {
    // Either the server stops, or nobody is left to read the answer.
    throw signal.aborted ? shuttingDown() : error;
  }
}

/** The token of the next page: the state all pages show, and the first position not yet shown. */
export function renderToken(revision: number, from: string): string {
  return Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start: from })).toString(
    "base64url",
  );
}

/** In a token: whatever state is current when it is used. */
const CURRENT = -1;

function resumeSnapshot({ store }: VerbDeps, token: string, limit: number | undefined): Snapshot {
  const { revision, from } = parseToken(token);
  if (revision === CURRENT) return { revision: store.revision, from, limit };
  if (revision > store.revision)
    throw badRequest(`invalid continue token: it is for revision ${revision}, which is not here`);
  if (revision >= store.compactedRevision) return { revision, from, limit };
  throw expired(
    "The provided continue parameter is too old to display a consistent list result. You can start a new list " +
      "without the continue parameter, or use the continue token in this response to retrieve the remainder of the " +
      "results. Continuing with the provided token results in an inconsistent list - objects that were created, " +
      "modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    { continue: renderToken(CURRENT, from) },
  );
}

function parseToken(token: string): { revision: number; from: string } {
  let content: unknown;
  try {
    content = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
  } catch {
    throw badRequest(
      "invalid continue token: continue key is not valid: it is not one that this server gave out",
    );
  }
  const { v, rv, start } = (content ?? {}) as { v?: unknown; rv?: unknown; start?: unknown };
  if (v !== "meta.k8s.io/v1" || !Number.isSafeInteger(rv) || typeof start !== "string") {
    throw badRequest(
      "invalid continue token: continue key is not valid: it lacks a version, a revision or a start",
    );
  }
  return { revision: rv as number, from: start };
}
