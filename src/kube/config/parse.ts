import { LineCounter, parseDocument, type ErrorCode, type YAMLError } from "yaml";
import { Fields, isMapping, kindOf } from "./fields.ts";
import type { Problems } from "./problems.ts";

/** A kubeconfig of 1,000 clusters with certificates takes about 4 MB; what is larger is something else. */
export const KUBECONFIG_BYTES_MAX = 8 * 1024 * 1024;

/** A kubeconfig has little to repeat; a hundred expansions stop an alias bomb long before memory does. */
const ALIASES_MAX = 100;

/** One file, entries by name. The entry's own mapping (`cluster:`, `user:`, `context:`) is what `Fields` reads. */
export interface Kubeconfig {
  readonly currentContext?: string;
  readonly clusters: ReadonlyMap<string, Fields>;
  readonly users: ReadonlyMap<string, Fields>;
  readonly contexts: ReadonlyMap<string, Fields>;
}

/** Checks the skeleton of the whole file; what is inside an entry is checked only when it is used. */
export function parseKubeconfig(file: string, text: string, problems: Problems): Kubeconfig {
  const root = toRoot(file, text, problems);
  const kind = root.string("kind");
  if (kind !== undefined && kind !== "Config") {
    root.complain("kind", `is ${kind}; this is not a kubeconfig, whose kind is Config`);
  }
  const apiVersion = root.string("apiVersion");
  if (apiVersion !== undefined && apiVersion !== "v1") {
    root.complain("apiVersion", `is ${apiVersion}; a kubeconfig has v1`);
  }
  const currentContext = root.string("current-context");
  return {
    ...(currentContext === undefined ? {} : { currentContext }),
    clusters: namedEntries(root, "clusters", "cluster"),
    users: namedEntries(root, "users", "user"),
    contexts: namedEntries(root, "contexts", "context"),
  };
}

function toRoot(file: string, text: string, problems: Problems): Fields {
  const value = parseYaml(file, text, problems);
  if (isMapping(value)) return new Fields({ file }, value, problems);
  if (value !== undefined && value !== null) {
    problems.add(
      { file },
      `is ${kindOf(value)}, not a kubeconfig; it must start with "apiVersion: v1" and "kind: Config"`,
    );
  }
  return new Fields({ file }, {}, problems);
}

function parseYaml(file: string, text: string, problems: Problems): unknown {
  const lineCounter = new LineCounter();
  try {
    // prettyErrors would quote the line, and a line of a kubeconfig may be a key.
    const document = parseDocument(text.replace(/^\uFEFF/, ""), {
      lineCounter,
      prettyErrors: false,
      merge: true,
    });
    // kubectl reads the first document and ignores the others.
    const errors = document.errors.filter((error) => error.code !== "MULTIPLE_DOCS");
    for (const error of errors) problems.add({ file }, describe(error, lineCounter));
    return errors.length > 0 ? undefined : document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (error) {
    // A RangeError is the parser's stack, exhausted by thousands of open brackets.
    const problem =
      error instanceof RangeError
        ? "is nested too deeply to be a kubeconfig; check that this is the right file"
        : `expands more than ${ALIASES_MAX} aliases, or one that has no anchor; write the values out`;
    problems.add({ file }, problem);
    return undefined;
  }
}

function describe(error: YAMLError, lines: LineCounter): string {
  const { line, col } = lines.linePos(error.pos[0]);
  return `line ${line}, column ${col}: ${YAML_WORDS[error.code] ?? "is not valid YAML; check quotes and indentation"}`;
}

/** Our own words, because the parser's quote the text they stumbled over. */
const YAML_WORDS: Partial<Record<ErrorCode, string>> = {
  DUPLICATE_KEY: "this key appears twice in one mapping; remove one of them",
  TAB_AS_INDENT: "a tab is used for indentation; use spaces",
  BAD_INDENT: "the indentation is wrong; align it with the lines around it",
  MISSING_CHAR: "a character is missing, most likely a closing quote or bracket, or a colon",
  BLOCK_AS_IMPLICIT_KEY: "a mapping stands where a single value belongs; quote a value that contains a colon",
  BAD_ALIAS: "an alias or anchor is malformed; write the value out, or quote it if it is no alias",
};

function namedEntries(root: Fields, listName: string, entryName: string): Map<string, Fields> {
  const { problems } = root;
  const entries = new Map<string, Fields>();
  for (const item of root.maps(listName)) {
    const name = item.string("name");
    if (name === undefined) {
      if (!item.isSet("name")) item.complain("name", `is missing; every item of ${listName} needs one`);
      continue;
    }
    const field = `${listName}[name=${name}]`;
    const place = { file: root.place.file, field: `${field}.${entryName}` };
    const value = item.raw(entryName) ?? {};
    if (!isMapping(value)) problems.add(place, `is ${kindOf(value)} where a mapping belongs`);
    if (entries.has(name))
      problems.add({ ...place, field }, "appears twice in this file; remove or rename one of them");
    else entries.set(name, new Fields(place, isMapping(value) ? value : {}, problems));
  }
  return entries;
}

/**
 * Several files as one: the first to set a name or the current context wins, and wins whole. Fields of two
 * entries with one name are never mixed, or a token could reach a server it was not meant for.
 */
export function mergeKubeconfigs(files: readonly Kubeconfig[]): Kubeconfig {
  const currentContext = files.find((file) => file.currentContext !== undefined)?.currentContext;
  return {
    ...(currentContext === undefined ? {} : { currentContext }),
    clusters: firstWins(files.map((file) => file.clusters)),
    users: firstWins(files.map((file) => file.users)),
    contexts: firstWins(files.map((file) => file.contexts)),
  };
}

function firstWins<V>(maps: readonly ReadonlyMap<string, V>[]): Map<string, V> {
  return new Map(maps.toReversed().flatMap((map) => [...map]));
}
