import { KubeError } from "./errors.ts";

/** Requirements on fields, all of which must hold; an empty one selects everything. */
export type FieldSelector = readonly FieldRequirement[];

export interface FieldRequirement {
  /** Such as `spec.nodeName`; which paths a resource supports is for its server to say. */
  readonly path: string;
  readonly operator: "=" | "!=";
  /** May be empty: `involvedObject.namespace=` selects events about cluster-scoped objects. */
  readonly value: string;
}

/** `path=value`, `path==value` or `path!=value`, joined by commas; in values `\`, `,` and `=` take a backslash. */
export function parseFieldSelector(text: string): FieldSelector {
  return splitTerms(text)
    .filter((term) => term !== "")
    .sort()
    .map((term) => parseTerm(text, term));
}

/** `valueOf` gives the text of a field, empty where the object has none. */
export function matchesFields(selector: FieldSelector, valueOf: (path: string) => string): boolean {
  return selector.every(({ path, operator, value }) => (valueOf(path) === value) === (operator === "="));
}

/** The paths a selector asks about, each once: for a server to check, or to find an index by. */
export function fieldsOf(selector: FieldSelector): readonly string[] {
  return [...new Set(selector.map(({ path }) => path))];
}

export function formatFieldSelector(selector: FieldSelector): string {
  return selector.map(({ path, operator, value }) => `${path}${operator}${escapeValue(value)}`).join(",");
}

function escapeValue(value: string): string {
  return value.replace(/[\\,=]/g, (special) => `\\${special}`);
}

/** At commas without a backslash before them. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    if (text[index] === "\\") index++;
    else if (text[index] === ",") {
      terms.push(text.slice(start, index));
      start = index + 1;
    }
  }
  return [...terms, text.slice(start)];
}

// Paths have no escapes, so the first operator ends the path; of `=` and `==` the longer is meant.
const TERM = /^(.*?)(!=|==|=)(.*)$/s;

function parseTerm(text: string, term: string): FieldRequirement {
  const match = TERM.exec(term);
  if (match === null)
    throw new KubeError("BadInput", `invalid selector: '${text}'; can't understand '${term}'`);
  const [, path = "", operator, value = ""] = match;
  return { path, operator: operator === "!=" ? "!=" : "=", value: unescapeValue(value) };
}

function unescapeValue(value: string): string {
  return value.replace(/\\([^]?)|[,=]/g, (found, escaped: string | undefined) => {
    if (escaped === undefined) {
      throw new KubeError("BadInput", `invalid field selector: unescaped character in value: ${found}`);
    }
    if (escaped === "" || !"\\,=".includes(escaped)) {
      throw new KubeError("BadInput", `invalid field selector: invalid escape sequence: ${found}`);
    }
    return escaped;
  });
}
