import { apiVersionOf } from "../kube/object.ts";
import { expired } from "./errors.ts";
import type { Filter } from "./filter.ts";
import type { Kind } from "./kinds.ts";
import { parseStored, renderObject } from "./objects.ts";
import type { StoredObject, StoreEvent } from "./store/store.ts";

/** Watch events as lines of text (spec/apiserver.md, section 9). Pure. */

export type Represent = (text: string) => string;
export function addedLine({ text }: StoredObject, represent: Represent): string {
  return line("ADDED", represent(text));
}

/**
 * How a write looks through a selector: an object that begins to match is ADDED, one that ceases to
 * match is DELETED, showing its last state that matched with the revision of the write that changed
 * it. Undefined when the write is not seen at all.
 */
export function eventLine(
  kind: Kind,
  filter: Filter,
  { type, object, previous }: StoreEvent,
  represent: Represent,
): string | undefined {
  const matched = previous !== undefined && filter.matches(previous);
  const matches = type !== "deleted" && filter.matches(object);
  if (matches) return line(matched ? "MODIFIED" : "ADDED", represent(object.text));
  if (!matched) return undefined;
  if (type === "deleted") return line("DELETED", represent(object.text));
  return line("DELETED", represent(renderObject(kind, parseStored(previous), object.revision)));
}

/** Tells the client how far it has seen, although nothing happened to it. */
export function bookmarkLine(
  kind: Kind,
  revision: number,
  represent: Represent,
  { endsInitialEvents = false } = {},
): string {
  const annotations = endsInitialEvents ? { "k8s.io/initial-events-end": "true" } : undefined;
  const metadata = { resourceVersion: String(revision), annotations };
  return line(
    "BOOKMARK",
    represent(JSON.stringify({ kind: kind.kind, apiVersion: apiVersionOf(kind), metadata })),
  );
}

export function expiredLine(asked: number, compactedRevision: number): string {
  const { status } = expired(`too old resource version: ${asked} (${compactedRevision})`);
  return line("ERROR", JSON.stringify(status));
}

function line(type: string, objectText: string): string {
  return `{"type":"${type}","object":${objectText}}\n`;
}
