import type { Clock } from "../../base/clock.ts";
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
  list(revision: number, page: Page): string;
  /** For one watch: the object of each event, bookmarks included, in the order in which they are sent. */
  events(): (text: string) => string;
}

export interface Page {
  readonly items: readonly { readonly text: string }[];
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
  { as, kind, query }: { as: Representation; kind: Kind; query: URLSearchParams },
): Representer {
  switch (as.kind) {
    case "table":
      return createTableRepresenter(deps, {
        kind,
        version: as.version,
        include: parseIncludeObject(query),
      });
    case "metadata":
      return createMetadataRepresenter(as.version);
    case "object":
    case "discovery": // has documents of its own, and never an object of a kind
      return createPlainRepresenter(kind);
  }
}

type IncludeObject = "None" | "Metadata" | "Object";

function parseIncludeObject(query: URLSearchParams): IncludeObject {
  const value = query.get("includeObject") || "Metadata";
  if (value === "None" || value === "Metadata" || value === "Object") return value;
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

/** Joins stored texts; nothing is parsed or serialised again. */
function createPlainRepresenter(kind: Kind): Representer {
  const prefixChars = typePrefix(kind).length;
  return {
    object: (text) => text,
    list(revision, page) {
      // Items of a typed list go without the kind and apiVersion that every stored text begins with.
      const items = page.items.map(({ text }) => `{${text.slice(prefixChars)}`);
      return listText(`${kind.kind}List`, apiVersionOf(kind), listMetadata(revision, page), items);
    },
    events: () => (text) => text,
  };
}

function createMetadataRepresenter(version: MetaVersion): Representer {
  const object = (text: string) => (isStatus(text) ? text : partialMetadata(text, version));
  return {
    object,
    list(revision, page) {
      const items = page.items.map(({ text }) => partialMetadata(text, version));
      return listText(
        "PartialObjectMetadataList",
        `meta.k8s.io/${version}`,
        listMetadata(revision, page),
        items,
      );
    },
    events: () => object,
  };
}

interface TableOptions {
  readonly kind: Kind;
  readonly version: MetaVersion;
  readonly include: IncludeObject;
}

function createTableRepresenter(
  deps: RepresenterDeps,
  { kind, version, include }: TableOptions,
): Representer {
  const printer = printerFor(kind.kind);

  function table(metadata: string, columnsText: string, rows: readonly string[]): string {
    return `{"kind":"Table","apiVersion":"meta.k8s.io/${version}","metadata":${metadata},"columnDefinitions":${columnsText},"rows":[${rows.join(",")}]}`;
  }

  function single(text: string, { withColumns }: { withColumns: boolean }): string {
    if (isStatus(text)) return text;
    const object = JSON.parse(text) as ApiObject;
    // A subresource may answer with another kind, as `token` does with a TokenRequest.
    const own = object["kind"] === kind.kind ? printer : printerFor(String(object["kind"]));
    const metadata = JSON.stringify({ resourceVersion: object.metadata.resourceVersion });
    const row = rowText(own, { object, text, version, include }, printContext(deps));
    return table(metadata, withColumns ? own.columnsText : "null", [row]);
  }

  return {
    object: (text) => single(text, { withColumns: true }),
    list(revision, page) {
      const context = printContext(deps);
      // Parsed and dropped, not kept beside the text: tables are asked for by people, and rarely twice.
      const rows = page.items.map(({ text }) =>
        rowText(printer, { object: JSON.parse(text) as ApiObject, text, version, include }, context),
      );
      return table(listMetadata(revision, page), printer.columnsText, rows);
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
  const cells = JSON.stringify(printer.cells(object, context));
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

function listText(kind: string, apiVersion: string, metadata: string, items: readonly string[]): string {
  return `{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":${metadata},"items":[${items.join(",")}]}`;
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
