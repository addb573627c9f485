import { formatJson, parseJson } from "../../kube/json-text.ts";
import type { Clock } from "../../base/clock.ts";
import type { HandlerResponse } from "../../kube/handler.ts";
import { apiVersionOf } from "../../kube/object.ts";
import { badRequest } from "../errors.ts";
import type { Kind } from "../kinds.ts";
import { typePrefix, type ApiObject } from "../objects.ts";
import type { PrintContext, Printer } from "../tables/printer.ts";
import { printerFor } from "../tables/printers.ts";
import type { MetaVersion, Representation } from "./accept.ts";
import { partialMetadata } from "./metadata.ts";

/**
 * Turns texts of stored objects into what the client asked to see: the objects as they are, their metadata, or rows
 * of a table. A Status passes unchanged, whatever was asked: nobody wants an error as a table.
 */
export interface Representer {
  /** The answer to a verb that returns one object. */
  object(text: string): string;
  /** In pieces if it is long, so that a list of 100,000 objects is never in memory as a whole. */
  list(revision: number, page: Page): HandlerResponse["body"];
  /** For one watch: the object of each event, bookmarks included, in the order in which they are sent. */
  events(): (text: string) => string;
}

interface Item {
  readonly text: string;
}

export interface Page {
  readonly items: readonly Item[];
  readonly next: string | undefined;
  readonly remaining: number | undefined;
}

export interface RepresenterDeps {
  readonly clock: Pick<Clock, "wall">;
  /** The class that claims without one get; asked only where classes are printed. */
  readonly defaultStorageClass: () => string | undefined;
}

/** Throws 400 for an `includeObject` that a table cannot honour. */
export function createRepresenter(
  deps: RepresenterDeps,
  { as, kind, accept = "", query }: Asked,
): Representer {
  // What is going to be made YAML or indented has to be there as a whole.
  const join = /yaml/i.test(accept) || query.has("pretty") ? joinWhole : joinInPieces;
  switch (as.kind) {
    case "table":
      return createTableRepresenter(deps, {
        kind,
        version: as.version,
        include: parseIncludeObject(query),
        join,
      });
    case "metadata":
      return createMetadataRepresenter(as.version, join);
    case "object":
    case "discovery": // has documents of its own, and never an object of a kind
      return createPlainRepresenter(kind, join);
  }
}

interface Asked {
  readonly as: Representation;
  readonly kind: Kind;
  readonly accept?: string | undefined;
  readonly query: URLSearchParams;
}

type IncludeObject = "None" | "Metadata" | "Object";

function parseIncludeObject(query: URLSearchParams): IncludeObject {
  const value = query.get("includeObject") || "Metadata";
  if (value === "None" || value === "Metadata" || value === "Object") return value;
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

/** Of watches that show objects as they are kept: one function for all, so that they can be told to show the same. */
export const asItIs = (text: string): string => text;

/** Joins stored texts; nothing is parsed or serialised again. */
function createPlainRepresenter(kind: Kind, join: Join): Representer {
  const prefixChars = typePrefix(kind).length;
  return {
    object: (text) => text,
    list(revision, page) {
      // Items of a typed list go without the kind and apiVersion that every stored text begins with.
      const item = ({ text }: Item) => `{${text.slice(prefixChars)}`;
      const begin = listBegin(`${kind.kind}List`, apiVersionOf(kind), listMetadata(revision, page));
      return join(begin, page.items, item);
    },
    events: () => asItIs,
  };
}

function createMetadataRepresenter(version: MetaVersion, join: Join): Representer {
  const object = (text: string) => (isStatus(text) ? text : partialMetadata(text, version));
  return {
    object,
    list(revision, page) {
      const metadata = listMetadata(revision, page);
      const begin = listBegin("PartialObjectMetadataList", `meta.k8s.io/${version}`, metadata);
      return join(begin, page.items, ({ text }) => partialMetadata(text, version));
    },
    events: () => object,
  };
}

interface TableOptions {
  readonly kind: Kind;
  readonly version: MetaVersion;
  readonly include: IncludeObject;
  readonly join: Join;
}

function createTableRepresenter(
  deps: RepresenterDeps,
  { kind, version, include, join }: TableOptions,
): Representer {
  const printer = printerFor(kind.kind);

  function tableBegin(metadata: string, columnsText: string): string {
    return `{"kind":"Table","apiVersion":"meta.k8s.io/${version}","metadata":${metadata},"columnDefinitions":${columnsText},"rows":[`;
  }

  function single(text: string, { withColumns }: { withColumns: boolean }): string {
    if (isStatus(text)) return text;
    const object = parseJson(text) as ApiObject;
    // A subresource may answer with another kind, as `token` does with a TokenRequest.
    const own = object["kind"] === kind.kind ? printer : printerFor(String(object["kind"]));
    const metadata = JSON.stringify({ resourceVersion: object.metadata.resourceVersion });
    const row = rowText(own, { object, text, version, include }, printContext(deps));
    return `${tableBegin(metadata, withColumns ? own.columnsText : "null")}${row}]}`;
  }

  return {
    object: (text) => single(text, { withColumns: true }),
    list(revision, page) {
      const context = printContext(deps);
      // Parsed and dropped, not kept beside the text: tables are asked for by people, and rarely twice.
      return join(tableBegin(listMetadata(revision, page), printer.columnsText), page.items, ({ text }) =>
        rowText(printer, { object: parseJson(text) as ApiObject, text, version, include }, context),
      );
    },
    events() {
      let withColumns = true;
      return (text) => {
        const rendered = single(text, { withColumns });
        if (!isStatus(text)) withColumns = false;
        return rendered;
      };
    },
  };
}

interface RowSource {
  readonly object: ApiObject;
  readonly text: string;
  readonly version: MetaVersion;
  readonly include: IncludeObject;
}

function rowText(
  printer: Printer,
  { object, text, version, include }: RowSource,
  context: PrintContext,
): string {
  const cells = formatJson(printer.cells(object, context));
  const conditions = printer.conditions(object);
  const conditionsText = conditions === undefined ? "" : `"conditions":${JSON.stringify(conditions)},`;
  const included = include === "None" ? "null" : include === "Object" ? text : partialMetadata(text, version);
  return `{"cells":${cells},${conditionsText}"object":${included}}`;
}

/** One moment for all rows of an answer; the default class is looked up at most once. */
function printContext({ clock, defaultStorageClass }: RepresenterDeps): PrintContext {
  let found: { readonly name: string | undefined } | undefined;
  return {
    nowMs: clock.wall().getTime(),
    defaultStorageClass: () => (found ??= { name: defaultStorageClass() }).name,
  };
}

function listBegin(kind: string, apiVersion: string, metadata: string): string {
  return `{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":${metadata},"items":[`;
}

/** A list of what `show` makes of each item, after what it begins with. */
type Join = (begin: string, items: readonly Item[], show: (item: Item) => string) => HandlerResponse["body"];

/** Above it a list goes out in pieces. Pages of clients have 500, and are sent with their length. */
const WHOLE_ITEMS_MAX = 1_000;
/** Of a piece: one write to the socket, and what a connection holds back for a reader that is slow. */
const PIECE_CHARS = 128 * 1024;

const joinInPieces: Join = (begin, items, show) =>
  items.length <= WHOLE_ITEMS_MAX ? joinWhole(begin, items, show) : pieces(begin, items, show);

function joinWhole(begin: string, items: readonly Item[], show: (item: Item) => string): string {
  return `${begin}${items.map(show).join(",")}]}`;
}

async function* pieces(
  begin: string,
  items: readonly Item[],
  show: (item: Item) => string,
): AsyncGenerator<string> {
  let [parts, chars] = [[] as string[], 0];
  let separator = begin;
  for (const item of items) {
    const part = show(item);
    parts.push(separator, part);
    separator = ",";
    chars += part.length;
    if (chars < PIECE_CHARS) continue;
    yield parts.join("");
    [parts, chars] = [[], 0];
  }
  yield `${parts.join("")}]}\n`;
}

function listMetadata(revision: number, { next, remaining }: Page): string {
  return JSON.stringify({
    resourceVersion: String(revision),
    continue: next,
    remainingItemCount: remaining,
  });
}

function isStatus(text: string): boolean {
  return text.startsWith('{"kind":"Status",');
}
