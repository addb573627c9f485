import type { Explanation } from "../../views/explanation.ts";

/** For programs: the same answer, with moments as the API writes them. */
export function explanationToJson(explanation: Explanation): Readonly<Record<string, unknown>> {
  const { blocker, chain, ...rest } = explanation;
  return {
    ...rest,
    ...(blocker && { blocker: dated(blocker) }),
    chain: chain.map(dated),
  };
}

function dated({ sinceMs, ...rest }: { readonly sinceMs?: number | undefined }): object {
  return { ...rest, ...(sinceMs !== undefined && { since: new Date(sinceMs).toISOString() }) };
}
