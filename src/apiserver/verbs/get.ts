import { notFound } from "../errors.ts";
import { parseVersion } from "../options.ts";
import { jsonResponse, keyFor, type Verb } from "../request.ts";
import { reachVersion } from "../snapshot.ts";

/** The latest state of one object; a resourceVersion only says how new it has to be. */
export const get: Verb = async (deps, { kind, namespace, name, query, signal }) => {
  await reachVersion(deps, parseVersion(query) ?? 0, signal);
  const stored = deps.store.get(keyFor(kind, namespace, name));
  if (stored === undefined) throw notFound(kind, name);
  return jsonResponse(200, stored.text);
};
