import { isJsonObject, type JsonObject } from "../../kube/patch/json.ts";
import { compareElements, parseElement, type Path, type PathElement } from "./path-element.ts";

/**
 * A set of field paths, as the tree it travels as (FieldsV1). A path is in the set if its node is a member; a node
 * that is not is only on the way to others. No node is empty: it is a member or has something below, the root excepted.
 *
 * Sets are values. Operations share what they do not change, and answer with their first argument itself
 * where nothing changes: `difference(a, b) === a` tells that they have nothing in common.
 */
export interface FieldSet {
  readonly isMember: boolean;
  readonly below: ReadonlyMap<PathElement, FieldSet>;
}

const NOTHING: ReadonlyMap<PathElement, FieldSet> = new Map();

export const EMPTY: FieldSet = { isMember: false, below: NOTHING };
const LEAF: FieldSet = { isMember: true, below: NOTHING };

export function isEmpty({ isMember, below }: FieldSet): boolean {
  return !isMember && below.size === 0;
}

export function has(set: FieldSet, path: Path): boolean {
  let node: FieldSet | undefined = set;
  for (const element of path) node = node?.below.get(element);
  return node?.isMember ?? false;
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmpty(b)) return a;
  if (isEmpty(a)) return b;
  let below: Map<PathElement, FieldSet> | undefined;
  for (const [element, other] of b.below) {
    const own = a.below.get(element);
    const both = own === undefined ? other : union(own, other);
    if (both !== own) (below ??= new Map(a.below)).set(element, both);
  }
  return withChanges(a, a.isMember || b.isMember, below);
}

/** The paths of `a` that are not in `b`. What lies below a path of `b` stays. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return subtract(a, b, { isDeep: false });
}

/** The paths of `a` that are neither in `b` nor below a path of it. */
export function deepDifference(a: FieldSet, b: FieldSet): FieldSet {
  return subtract(a, b, { isDeep: true });
}

function subtract(a: FieldSet, b: FieldSet, how: { isDeep: boolean }): FieldSet {
  if (how.isDeep && b.isMember) return EMPTY;
  let below: Map<PathElement, FieldSet> | undefined;
  for (const [element, other] of b.below) {
    const own = a.below.get(element);
    if (own === undefined) continue;
    const rest = subtract(own, other, how);
    if (rest === own) continue;
    below ??= new Map(a.below);
    if (isEmpty(rest)) below.delete(element);
    else below.set(element, rest);
  }
  return withChanges(a, a.isMember && !b.isMember, below);
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  const below = new Map<PathElement, FieldSet>();
  for (const [element, own] of a.below) {
    const other = b.below.get(element);
    const both = other === undefined ? EMPTY : intersection(own, other);
    if (!isEmpty(both)) below.set(element, both);
  }
  return { isMember: a.isMember && b.isMember, below };
}

/** Every path: those of one level before those below it, as the real server lists conflicts. */
export function pathsOf(set: FieldSet, prefix: Path = []): Path[] {
  const children = sorted(set);
  return [
    ...children.flatMap(([element, { isMember }]) => (isMember ? [[...prefix, element]] : [])),
    ...children.flatMap(([element, child]) =>
      child.below.size === 0 ? [] : pathsOf(child, [...prefix, element]),
    ),
  ];
}

/** The same set with its first steps called differently: for a kind that two API groups spell in their own way. */
export function renameFields(set: FieldSet, rename: (element: PathElement) => PathElement): FieldSet {
  const below = [...set.below].map(([element, child]) => [rename(element), child] as const);
  return { isMember: set.isMember, below: new Map(below) };
}

export function setOf(...paths: readonly Path[]): FieldSet {
  const builder = new FieldSetBuilder();
  for (const path of paths) builder.insert(path);
  return builder.build();
}

interface MutableNode {
  isMember: boolean;
  below: Map<PathElement, MutableNode>;
}

/** Shared by all nodes that have nothing below, which are most; never written to. */
const NO_NODES = new Map<PathElement, MutableNode>();

/** Collects paths; the path to the root is nobody's and is passed over. */
export class FieldSetBuilder {
  #root: MutableNode | undefined;

  insert(path: Path): void {
    if (path.length === 0) return;
    let node = (this.#root ??= createNode());
    for (const element of path) {
      let next = node.below.get(element);
      if (next === undefined) {
        next = createNode();
        if (node.below === NO_NODES) node.below = new Map();
        node.below.set(element, next);
      }
      node = next;
    }
    node.isMember = true;
  }

  build(): FieldSet {
    return this.#root ?? EMPTY;
  }
}

function createNode(): MutableNode {
  return { isMember: false, below: NO_NODES };
}

/** FieldsV1: `{}` is a path, a `.` marks one that has others below it. Keys in the order of the real server. */
export function toFieldsV1(set: FieldSet): JsonObject {
  const fields: Record<string, JsonObject> = {};
  if (set.isMember && set.below.size > 0) fields["."] = {};
  for (const [element, child] of sorted(set)) fields[element] = toFieldsV1(child);
  return fields;
}

/** Undefined for what is no FieldsV1. Steps of a kind we do not know are left out with all below them. */
export function fromFieldsV1(fields: unknown): FieldSet | undefined {
  const node = parseNode(fields);
  if (node === undefined) return undefined;
  return node.below.size === 0 ? EMPTY : { isMember: false, below: node.below };
}

function parseNode(fields: unknown): FieldSet | undefined {
  if (!isJsonObject(fields)) return undefined;
  let isMember = false;
  let below: Map<PathElement, FieldSet> | undefined;
  for (const key of Object.keys(fields)) {
    const element = key === "." ? "skip" : parseElement(key);
    if (element === undefined) return undefined;
    if (key === ".") isMember = true;
    if (element === "skip") continue;
    const child = parseNode(fields[key]);
    if (child === undefined) return undefined;
    (below ??= new Map()).set(element, child);
  }
  return below === undefined ? LEAF : { isMember, below };
}

function sorted({ below }: FieldSet): [PathElement, FieldSet][] {
  return [...below].sort(([a], [b]) => compareElements(a, b));
}

function withChanges(
  set: FieldSet,
  isMember: boolean,
  below: ReadonlyMap<PathElement, FieldSet> | undefined,
): FieldSet {
  if (below === undefined && isMember === set.isMember) return set;
  return { isMember, below: below ?? set.below };
}
