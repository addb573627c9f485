import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  type Document,
  type Node,
  type ParsedNode,
} from "yaml";
import { KINDS, type Kind } from "../../apiserver/kinds.ts";
import { AS_SERVERS_READ } from "../../apiserver/schema/yaml-body.ts";
import type { KubeObject, Resource } from "../../kube/object.ts";
import { ProcessError } from "../errors.ts";
import { faultsOf } from "./manifest-check.ts";

/** One object of a manifest file, and how the server calls its kind. */
export interface ManifestObject {
  readonly resource: Resource;
  readonly object: KubeObject;
  /** `pod/web`, as people write it. */
  readonly label: string;
}

/** A manifest has little to repeat; a hundred expansions stop an alias bomb long before memory does. */
const ALIASES_MAX = 100;

/** Of one file. Whoever has more than this to mend begins at the top. */
const FAULTS_MAX = 10;

/**
 * The objects of a file in steps. A file may name an object again further down: that begins a new step, which is taken once
 * everything before it is ready. So one file tells a story: a claim that grows, a pod that moves. What can be known to be
 * wrong with any of them is said at once, each with its line and field: nothing is started for a file with a mistake in it.
 */
export function parseManifest(file: string, text: string): readonly (readonly ManifestObject[])[] {
  const steps: ManifestObject[][] = [[]];
  const faults: string[] = [];
  const known = new Set<string>();
  let seen = new Set<string>();
  for (const item of readObjects(file, text)) {
    const { label, object } = item;
    const id = `${label} ${object.metadata.namespace ?? ""}`;
    if (seen.has(id)) {
      steps.push([]);
      seen = new Set();
    }
    faults.push(...item.faults({ isWhole: !known.has(id) }));
    known.add(id);
    seen.add(id);
    steps.at(-1)?.push({ resource: item.resource, object, label });
  }
  if (faults.length > 0) throw bad(file, toldTogether(faults));
  if (steps[0]?.length === 0) throw bad(file, "holds no object; give a YAML file with at least one");
  return steps;
}

interface ReadObject extends ManifestObject {
  /** What is wrong with it, a line each. */
  faults(how: { readonly isWhole: boolean }): readonly string[];
}

function readObjects(file: string, text: string): readonly ReadObject[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { ...AS_SERVERS_READ, lineCounter: lines, merge: true });
  return [...documents].flatMap((document, index) => {
    const [problem] = document.errors;
    if (problem) {
      const { line, col } = lines.linePos(problem.pos[0]);
      throw bad(file, `line ${line}, column ${col}: is not valid YAML: ${firstLine(problem.message)}`);
    }
    const { line } = lines.linePos(document.range[0]);
    const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX });
    if (value === null || value === undefined) return [];
    const where = `${file}, document ${index + 1} (line ${line})`;
    return itemsOf(value).map(({ item, path }) => {
      const { kind, ...object } = toObject(where, item);
      const lineOf = (field: string) => lines.linePos(placeOf(document, [...path, ...segments(field)])).line;
      const faults = ({ isWhole }: { readonly isWhole: boolean }) =>
        faultsOf(kind, object.object, { isWhole }).map(
          ({ field, message }) =>
            `line ${lineOf(field)}: ${object.label}: ${field === "" ? "" : `${field}: `}${message}`,
        );
      return { ...object, faults };
    });
  });
}

/** `kind: List` holds objects, as kubectl writes them. */
function itemsOf(value: unknown): readonly { readonly item: unknown; readonly path: readonly string[] }[] {
  const { kind, items } = value as { kind?: unknown; items?: unknown };
  if (kind !== "List" || !Array.isArray(items)) return [{ item: value, path: [] }];
  return items.map((item: unknown, index) => ({ item, path: ["items", String(index)] }));
}

function toObject(where: string, value: unknown): ManifestObject & { readonly kind: Kind } {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad(where, "is not an object; it must have apiVersion, kind and metadata");
  const { apiVersion, kind: kindName, metadata } = value as Record<string, unknown>;
  if (typeof apiVersion !== "string" || apiVersion === "") throw bad(where, "apiVersion is missing");
  if (typeof kindName !== "string" || kindName === "") throw bad(where, "kind is missing");
  const name = (metadata as { name?: unknown } | undefined | null)?.name;
  if (typeof name !== "string" || name === "")
    throw bad(
      where,
      `metadata.name of this ${kindName} is missing; a generated name could not be waited for`,
    );
  const kind = kindOf(apiVersion, kindName);
  if (kind === undefined)
    throw bad(
      where,
      `${apiVersion} ${kindName} is not served by the embedded API server; see docs/reference`,
    );
  const object = withNamespace(value as KubeObject, kind);
  return { kind, resource: kind, object, label: `${kindName.toLowerCase()}/${name}` };
}

function withNamespace(object: KubeObject, { namespaced }: Resource): KubeObject {
  if (!namespaced || object.metadata.namespace !== undefined) return object;
  return { ...object, metadata: { ...object.metadata, namespace: "default" } };
}

function kindOf(apiVersion: string, kind: string): Kind | undefined {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return KINDS.find((item) => item.group === group && item.version === version && item.kind === kind);
}

/** `spec.containers[0].name` in parts. */
function segments(field: string): readonly string[] {
  return [...field.matchAll(/([^.[\]]+)|\[([^\]]*)\]/g)].map(([, name, index]) => name ?? index ?? "");
}

/** Where in the text a field is; of one that is missing, where the nearest above it is. */
function placeOf(document: Document<ParsedNode>, path: readonly string[]): number {
  let node: unknown = document.contents;
  let at = document.contents?.range[0] ?? 0;
  for (const segment of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === segment);
      if (pair === undefined) return at;
      at = (pair.key as Node).range?.[0] ?? at;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(segment)];
      at = (node as Node | undefined)?.range?.[0] ?? at;
    } else return at;
  }
  return at;
}

function toldTogether(faults: readonly string[]): string {
  const more = faults.length - FAULTS_MAX;
  const told = more > 0 ? [...faults.slice(0, FAULTS_MAX), `and ${more} more`] : faults;
  return told.length === 1 ? told.join("") : `\n  ${told.join("\n  ")}`;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

function bad(where: string, problem: string): ProcessError {
  return new ProcessError("BadFile", `${where}: ${problem}`);
}
