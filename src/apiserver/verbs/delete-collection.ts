import { parseDeleteOptions } from "../delete-options.ts";
import { parseFilter } from "../filter.ts";
import { jsonResponse, requesterOf, type Verb } from "../request.ts";
import { deleteIfThere } from "./delete.ts";
import { takePage } from "./list.ts";

/** Deletes what the selectors match, one by one, and answers with the list as it was selected. */
export const deleteCollection: Verb = async (deps, request) => {
  const { kind, namespace, query, representer } = request;
  const options = parseDeleteOptions(request);
  const requester = requesterOf(request, options);
  const revision = deps.store.revision;
  const page = takePage(deps.store, kind, namespace, parseFilter(kind, query), {
    revision,
    from: undefined,
    limit: undefined,
  });
  for (const { key } of page.items) await deleteIfThere(deps, kind, key, { options, requester });
  return jsonResponse(200, representer.list(revision, page));
};
