import { resourceName } from "../../kube/object.ts";
import { parseFilter, type Filter } from "../filter.ts";
import { storedKind, type Kind } from "../kinds.ts";
import { parseListOptions } from "../options.ts";
import { jsonResponse, type Verb } from "../request.ts";
import { chooseSnapshot, renderToken, type Snapshot } from "../snapshot.ts";
import { positionAfter } from "../store/keys.ts";
import type { ObjectStore, StoredObject } from "../store/store.ts";

/**
 * A page of a collection. All pages of one list show the state of the first page's revision, whatever is
 * written meanwhile, for as long as history reaches back to it.
 */
export const list: Verb = async (deps, { kind, namespace, query, signal, representer }) => {
  const options = parseListOptions(query);
  const filter = parseFilter(kind, query);
  const snapshot = await chooseSnapshot(deps, options, signal);
  return jsonResponse(
    200,
    representer.list(snapshot.revision, takePage(deps.store, kind, namespace, filter, snapshot)),
  );
};

export interface Page {
  readonly items: readonly StoredObject[];
  readonly next: string | undefined;
  /** How many items follow; known only where nothing is selected. */
  readonly remaining: number | undefined;
}

export function takePage(
  store: ObjectStore,
  kind: Kind,
  namespace: string | undefined,
  filter: Filter,
  { revision, from, limit = Infinity }: Snapshot,
): Page {
  const items: StoredObject[] = [];
  let remaining = 0;
  for (const object of store.scan({
    resource: resourceName(storedKind(kind)),
    namespace,
    from,
    atRevision: revision,
  })) {
    if (!filter.matches(object)) continue;
    if (items.length < limit) items.push(object);
    else remaining++;
    // With a selector nobody asks how many are left, only whether there are any.
    if (remaining > 0 && filter.isSelective) break;
  }
  const last = items.at(-1);
  return {
    items,
    next: remaining > 0 && last !== undefined ? renderToken(revision, positionAfter(last.key)) : undefined,
    remaining: remaining > 0 && !filter.isSelective ? remaining : undefined,
  };
}
