import { LineCounter, parseAllDocuments } from "yaml";
import { KINDS } from "../../apiserver/kinds.ts";
import type { KubeObject, Resource } from "../../kube/object.ts";
import { ProcessError } from "../errors.ts";

/** One object of a manifest file, and how the server calls its kind. */
export interface ManifestObject {
  readonly resource: Resource;
  readonly object: KubeObject;
  /** `pod/web`, as people write it. */
  readonly label: string;
}

/** A manifest has little to repeat; a hundred expansions stop an alias bomb long before memory does. */
const ALIASES_MAX = 100;

/**
 * The objects of a file in steps. A file may name an object again further down: that begins a new step, which is taken once
 * everything before it is ready. So one file tells a story: a claim that grows, a pod that moves.
 */
export function parseManifest(file: string, text: string): readonly (readonly ManifestObject[])[] {
  const steps: ManifestObject[][] = [[]];
  let seen = new Set<string>();
  for (const item of parseObjects(file, text)) {
    const id = `${item.label} ${item.object.metadata.namespace ?? ""}`;
    if (seen.has(id)) {
      steps.push([]);
      seen = new Set();
    }
    seen.add(id);
    steps.at(-1)?.push(item);
  }
  if (steps[0]?.length === 0) throw bad(file, "holds no object; give a YAML file with at least one");
  return steps;
}

function parseObjects(file: string, text: string): readonly ManifestObject[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, merge: true });
  return [...documents].flatMap((document, index) => {
    const [problem] = document.errors;
    if (problem) {
      const { line, col } = lines.linePos(problem.pos[0]);
      throw bad(file, `line ${line}, column ${col}: is not valid YAML: ${firstLine(problem.message)}`);
    }
    const { line } = lines.linePos(document.range[0]);
    const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX });
    if (value === null || value === undefined) return [];
    return itemsOf(value).map((item) => toObject(`${file}, document ${index + 1} (line ${line})`, item));
  });
}

/** `kind: List` holds objects, as kubectl writes them. */
function itemsOf(value: unknown): readonly unknown[] {
  const { kind, items } = value as { kind?: unknown; items?: unknown };
  return kind === "List" && Array.isArray(items) ? items : [value];
}

function toObject(where: string, value: unknown): ManifestObject {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad(where, "is not an object; it must have apiVersion, kind and metadata");
  const { apiVersion, kind, metadata } = value as Record<string, unknown>;
  if (typeof apiVersion !== "string" || apiVersion === "") throw bad(where, "apiVersion is missing");
  if (typeof kind !== "string" || kind === "") throw bad(where, "kind is missing");
  const name = (metadata as { name?: unknown } | undefined | null)?.name;
  if (typeof name !== "string" || name === "")
    throw bad(where, `metadata.name of this ${kind} is missing; a generated name could not be waited for`);
  const resource = resourceOf(apiVersion, kind);
  if (resource === undefined)
    throw bad(where, `${apiVersion} ${kind} is not served by the embedded API server; see docs/reference`);
  return {
    resource,
    object: withNamespace(value as KubeObject, resource),
    label: `${kind.toLowerCase()}/${name}`,
  };
}

function withNamespace(object: KubeObject, { namespaced }: Resource): KubeObject {
  if (!namespaced || object.metadata.namespace !== undefined) return object;
  return { ...object, metadata: { ...object.metadata, namespace: "default" } };
}

function resourceOf(apiVersion: string, kind: string): Resource | undefined {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return KINDS.find((item) => item.group === group && item.version === version && item.kind === kind);
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

function bad(where: string, problem: string): ProcessError {
  return new ProcessError("BadFile", `${where}: ${problem}`);
}
