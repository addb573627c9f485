import { apiVersionOf } from "../kube/object.ts";
import { expired } from "./errors.ts";
import type { Filter } from "./filter.ts";
import type { Kind } from "./kinds.ts";
import { asItIs } from "./negotiate/representations.ts";
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
  if (matches) return objectLine(matched ? "MODIFIED" : "ADDED", object, represent);
  if (!matched) return undefined;
  if (type === "deleted") return objectLine("DELETED", object, represent);
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

interface Line {
  readonly type: string;
  readonly object: StoredObject;
  readonly line: string;
}

/**
 * The newest lines, by revision: 3,000 watchers of one write are sent one string, not 3,000 that are equal. It takes
 * 4 MB at most: 256 lines of 16 kB. A longer one is made for each watcher.
 */
const newest: (Line | undefined)[] = [];
const NEWEST_MAX = 256;
const NEWEST_CHARS_MAX = 16 * 1024;

function objectLine(type: string, object: StoredObject, represent: Represent): string {
  if (represent !== asItIs) return line(type, represent(object.text));
  const slot = object.revision % NEWEST_MAX;
  const known = newest[slot];
  if (known?.object === object && known.type === type) return known.line;
  const made = line(type, object.text);
  if (made.length <= NEWEST_CHARS_MAX) newest[slot] = { type, object, line: made };
  return made;
}

function line(type: string, objectText: string): string {
  return `{"type":"${type}","object":${objectText}}\n`;
}
