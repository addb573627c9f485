import { evaluationError } from "../errors.ts";
import { declare, type Library } from "../functions.ts";
import { addEntry, BuiltMap, OpaqueValue, type Value } from "../values.ts";

interface Parts {
  readonly scheme: string;
  /** With its port, IPv6 in brackets. */
  readonly host: string;
  readonly hostname: string;
  readonly port: string;
  readonly path: string;
  readonly query: string;
}

class UrlValue extends OpaqueValue {
  readonly type = "kubernetes.URL";
  readonly text: string;
  readonly parts: Parts;

  constructor(text: string, parts: Parts) {
    super();
    this.text = text;
    this.parts = parts;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof UrlValue && other.text === this.text;
  }
}

/** URLs, absolute ones and absolute paths, as Kubernetes lets expressions take them apart. */
export const URLS: Library = [
  declare("url(string) kubernetes.URL", (text: string) => {
    const parts = parse(text);
    if (parts === undefined)
      throw evaluationError(`URL parse error during conversion from string: ${JSON.stringify(text)}`);
    return new UrlValue(text, parts);
  }),
  declare("isURL(string) bool", (text: string) => parse(text) !== undefined),
  declare("kubernetes.URL -> getScheme() string", ({ parts }: UrlValue) => parts.scheme),
  declare("kubernetes.URL -> getHost() string", ({ parts }: UrlValue) => parts.host),
  declare("kubernetes.URL -> getHostname() string", ({ parts }: UrlValue) => parts.hostname),
  declare("kubernetes.URL -> getPort() string", ({ parts }: UrlValue) => parts.port),
  declare("kubernetes.URL -> getEscapedPath() string", ({ parts }: UrlValue) => parts.path),
  declare("kubernetes.URL -> getQuery() map(string, list(string))", ({ parts }: UrlValue) =>
    queryOf(parts.query),
  ),
];

/** By hand, as RFC 3986 takes a text apart: JavaScript's URL would mend what is wrong with it, and spell it anew. */
const FORM =
  /^(?:([A-Za-z][A-Za-z0-9+.-]*):\/\/(?:[^/?#@]*@)?(\[[0-9A-Fa-f:.]+\]|[^/?#:[\]@]*)(?::(\d{0,5}))?)?((?:\/[^?#]*)?)(?:\?([^#]*))?(?:#.*)?$/;

function parse(text: string): Parts | undefined {
  const match = FORM.exec(text);
  // Control characters have no place in one, and a percent sign stands before two digits.
  if (match === null || /\p{Cc}/u.test(text)) return undefined;
  const [, scheme = "", host = "", port = "", path = "", query = ""] = match;
  if (scheme === "" && !path.startsWith("/")) return undefined;
  if (/%(?![0-9A-Fa-f]{2})/.test(path) || host.includes(" ")) return undefined;
  return {
    scheme: scheme.toLowerCase(),
    host: port === "" ? host : `${host}:${port}`,
    hostname: host.replace(/^\[|\]$/g, ""),
    port,
    path: path.replace(/[^\x21-\x7e]/gu, (char) => encodeURIComponent(char)),
    query,
  };
}

function queryOf(query: string): BuiltMap {
  const values = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(query)) {
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  const entries = new Map<string, readonly [Value, Value]>();
  for (const [name, list] of values) addEntry(entries, name, list);
  return new BuiltMap(entries);
}
