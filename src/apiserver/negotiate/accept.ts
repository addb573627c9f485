import { StatusError } from "../errors.ts";
import type { VerbName } from "../verb-names.ts";

/** In which form an answer goes out (spec/apiserver.md, section 4.2). */
export interface Negotiated {
  readonly as: Representation;
  readonly encoding: "json" | "yaml";
}

/** What an answer shows of its object. */
export type Representation =
  | { readonly kind: "object" }
  | { readonly kind: "table"; readonly version: MetaVersion }
  | { readonly kind: "metadata"; readonly version: MetaVersion }
  | { readonly kind: "discovery"; readonly version: DiscoveryVersion };

/** Versions of meta.k8s.io in which tables and bare metadata can be had; they differ in name alone. */
export type MetaVersion = "v1" | "v1beta1";
export type DiscoveryVersion = "v2" | "v2beta1";

/**
 * What answers at a path: one object, a list, a stream of events, the answer to a question (a review, a token, a binding:
 * nothing that is kept, and so nothing that has columns), `/api` and `/apis`, or a document that has no other form than
 * its own.
 */
export type Endpoint = "object" | "list" | "watch" | "question" | "discovery" | "document";

/** Subresources that are asked, not kept: a verb on them is about something else than their object. */
const QUESTIONS: ReadonlySet<string | undefined> = new Set(["binding", "eviction", "finalize", "token"]);

export function endpointOf(verb: VerbName, subresource?: string): Endpoint {
  if (QUESTIONS.has(subresource)) return "question";
  if (verb === "watch") return "watch";
  return verb === "list" || verb === "deletecollection" ? "list" : "object";
}

/**
 * The first wish of the client that can be met: by quality, then what it names before what it merely allows (a wildcard),
 * then in its own order. Protobuf and CBOR are passed over, since all known clients name JSON after them. Throws 406
 * where nothing is left.
 */
export function negotiate(accept: string | undefined, endpoint: Endpoint): Negotiated {
  if (accept === undefined || accept.trim() === "") return PLAIN;
  const elements = parseAccept(accept);
  for (const element of elements) {
    const negotiated = offer(element, endpoint);
    if (negotiated !== undefined) return negotiated;
  }
  throw notAcceptable(elements);
}

export function contentType({ as, encoding }: Negotiated): string {
  if (as.kind !== "discovery") return `application/${encoding}`;
  return `application/json;g=${DISCOVERY_GROUP};v=${as.version};as=${DISCOVERY_LIST}`;
}

const PLAIN: Negotiated = { as: { kind: "object" }, encoding: "json" };

const META_GROUP = "meta.k8s.io";
const DISCOVERY_GROUP = "apidiscovery.k8s.io";
const DISCOVERY_LIST = "APIGroupDiscoveryList";

const ENCODINGS: Readonly<Record<string, Negotiated["encoding"]>> = {
  "application/json": "json",
  "application/yaml": "yaml",
  "*/*": "json",
};

interface AcceptElement {
  /** Without parameters: `application/json`. */
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

function parseAccept(header: string): readonly AcceptElement[] {
  return header
    .split(",")
    .map(parseElement)
    .filter(({ type, quality }) => type !== "" && quality > 0)
    .sort((a, b) => b.quality - a.quality || Number(a.type === "*/*") - Number(b.type === "*/*"));
}

function parseElement(text: string): AcceptElement & { readonly quality: number } {
  const [type = "", ...rest] = text.split(";").map((part) => part.trim());
  const parameters = new Map(
    rest.map((part) => {
      const [name = "", value = ""] = part.split("=").map((side) => side.trim());
      return [name.toLowerCase(), value.replace(/^"(.*)"$/, "$1")] as const;
    }),
  );
  const quality = Number(parameters.get("q") ?? 1);
  return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 1 : quality };
}

/** What one element of the header gets here; undefined where it asks for something else. */
function offer({ type, parameters }: AcceptElement, endpoint: Endpoint): Negotiated | undefined {
  const encoding = Object.hasOwn(ENCODINGS, type) ? ENCODINGS[type] : undefined;
  const stream = parameters.get("stream") ?? "";
  const isStreamed = endpoint === "watch" || stream !== "";
  if (encoding === undefined || (isStreamed && encoding === "yaml")) return undefined;
  if (stream !== "" && stream !== "watch") return undefined;
  const as = representation(parameters, endpoint);
  if (as === undefined || (as.kind === "discovery" && encoding === "yaml")) return undefined;
  return { as, encoding };
}

function representation(
  parameters: ReadonlyMap<string, string>,
  endpoint: Endpoint,
): Representation | undefined {
  const [as = "", group = "", version = ""] = ["as", "g", "v"].map((name) => parameters.get(name));
  if (as === "" && group === "" && version === "") return PLAIN.as;
  if (endpoint === "discovery" && as === DISCOVERY_LIST && group === DISCOVERY_GROUP) {
    return version === "v2" || version === "v2beta1" ? { kind: "discovery", version } : undefined;
  }
  if (group !== META_GROUP || (version !== "v1" && version !== "v1beta1")) return undefined;
  if (endpoint === "discovery" || endpoint === "document") return undefined;
  if (as === "Table") return endpoint === "question" ? undefined : { kind: "table", version };
  // The form of a list is asked for by another name than that of its items.
  const metadata = endpoint === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return as === metadata ? { kind: "metadata", version } : undefined;
}

/** Two texts, as in the real server: no element is of a type we have, or none of them in the form asked for. */
function notAcceptable(elements: readonly AcceptElement[]): StatusError {
  const types = "application/json, application/yaml";
  if (elements.some(({ type }) => Object.hasOwn(ENCODINGS, type))) {
    return new StatusError(406, `only the following media types are accepted: ${types}`);
  }
  return new StatusError(406, `406: Not Acceptable\n\nAvailable representations: ${types}`, { details: {} });
}
