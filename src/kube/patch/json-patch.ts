import { KubeError } from "../errors.ts";
import {
  checkDepth,
  cloneJson,
  describeJson,
  isDeeperThan,
  isJsonList,
  isJsonObject,
  JSON_DEPTH_MAX,
  jsonEqual,
  memberOf,
  type Json,
  type JsonObject,
} from "./json.ts";

/** The real server's bound; one more is refused as too large. */
export const JSON_PATCH_OPERATIONS_MAX = 10_000;

/**
 * Text that all `copy` operations of one patch may add: the real server's 3 MiB. Without it twenty
 * operations that copy a document into itself make a million documents.
 */
export const JSON_PATCH_COPY_CHARS_MAX = 3 * 1024 * 1024;

/**
 * JSON patch (RFC 6902) as the real server applies it, which is lenient in two places that clients rely
 * on: `test` for null succeeds where the member is missing (its parent must be there), and `replace` of
 * a missing member adds it. All operations apply or none: the document given is never changed.
 */
export function applyJsonPatch(document: unknown, operations: unknown): Json {
  const draft: Draft = {
    root: checkDepth(document, "the document to patch"),
    owned: new WeakSet(),
    copiedChars: 0,
  };
  decodeOperations(operations).forEach((operation, index) => {
    try {
      applyOperation(draft, operation);
    } catch (error) {
      if (!(error instanceof DoesNotApply)) throw error;
      const path = typeof operation.path === "string" ? operation.path : "";
      throw new KubeError(
        "Invalid",
        `JSON patch operation ${index} (${operation.op} ${path}): ${error.message}`,
      );
    }
  });
  return checkDepth(draft.root, "the patched document");
}

/** Copy on write: containers in `owned` were made by this patch and may be changed in place. */
interface Draft {
  root: Json;
  readonly owned: WeakSet<object>;
  copiedChars: number;
}

/** An operation from the wire: an object with an `op`, the rest still unproven. */
interface Operation {
  readonly op: string;
  readonly path?: unknown;
  readonly from?: unknown;
  readonly value?: Json;
}

class DoesNotApply extends Error {}

function decodeOperations(operations: unknown): readonly Operation[] {
  if (!isJsonList(operations)) {
    throw new KubeError(
      "BadRequest",
      `error decoding patch: a JSON patch is a list, not ${describeJson(operations)}`,
    );
  }
  if (operations.length > JSON_PATCH_OPERATIONS_MAX) {
    throw new KubeError(
      "RequestEntityTooLarge",
      `the allowed maximum operations in a JSON patch is ${JSON_PATCH_OPERATIONS_MAX}, got ${operations.length}`,
    );
  }
  return operations.map((operation, index) => {
    const op = isJsonObject(operation) ? memberOf(operation, "op") : undefined;
    if (isJsonObject(operation) && typeof op === "string") return { ...operation, op };
    throw new KubeError(
      "BadRequest",
      `error decoding patch: operation ${index} is not an object with an \`op\``,
    );
  });
}

function applyOperation(draft: Draft, operation: Operation): void {
  const path = parsePointer(operation.path, "path");
  switch (operation.op) {
    case "test":
      test(draft, path, operation.value ?? null);
      break;
    case "add":
      add(draft, path, valueOf(operation, path));
      break;
    case "replace":
      replace(draft, path, valueOf(operation, path));
      break;
    case "remove":
      remove(draft, path);
      break;
    case "move":
      add(draft, path, remove(draft, parsePointer(operation.from, "from")));
      break;
    case "copy":
      add(draft, path, copied(draft, parsePointer(operation.from, "from"), path));
      break;
    default:
      throw new DoesNotApply("no such operation; there are add, remove, replace, move, copy and test");
  }
}

function test(draft: Draft, path: Pointer, expected: Json): void {
  const found = path.length === 0 ? draft.root : read(parentOf(draft.root, path), lastOf(path));
  if (!jsonEqual(found ?? null, expected)) throw new DoesNotApply("the value there is another");
}

function add(draft: Draft, path: Pointer, value: Json): void {
  if (path.length === 0) throw new DoesNotApply("the whole document can only be replaced");
  const parent = ownParent(draft, path);
  const key = lastOf(path);
  if (!Array.isArray(parent)) setMember(parent, key, value);
  else if (key === "-") parent.push(value);
  else parent.splice(indexIn(key, parent.length + 1), 0, value);
}

function replace(draft: Draft, path: Pointer, value: Json): void {
  if (path.length === 0) {
    if (typeof value !== "object" || value === null)
      throw new DoesNotApply("a document is an object or a list");
    draft.root = value;
    return;
  }
  const parent = ownParent(draft, path);
  const key = lastOf(path);
  if (Array.isArray(parent)) parent[indexIn(key, parent.length)] = value;
  else setMember(parent, key, value);
}

function remove(draft: Draft, path: Pointer): Json {
  if (path.length === 0) throw new DoesNotApply("the whole document cannot be taken away");
  const parent = ownParent(draft, path);
  const key = lastOf(path);
  const value = read(parent, key);
  if (value === undefined) throw new DoesNotApply("there is nothing at that path");
  if (Array.isArray(parent)) parent.splice(indexIn(key, parent.length), 1);
  else Reflect.deleteProperty(parent, key);
  return value;
}

/** A deep copy: sharing would let a later operation on one place change the other. */
function copied(draft: Draft, from: Pointer, to: Pointer): Json {
  const value = from.length === 0 ? draft.root : read(parentOf(draft.root, from), lastOf(from));
  if (value === undefined) throw new DoesNotApply("there is nothing to copy at `from`");
  checkNesting(value, to);
  draft.copiedChars += JSON.stringify(value).length;
  if (draft.copiedChars > JSON_PATCH_COPY_CHARS_MAX) {
    throw new DoesNotApply(`copies add up to more than ${JSON_PATCH_COPY_CHARS_MAX} characters`);
  }
  return cloneJson(value);
}

function valueOf(operation: Operation, path: Pointer): Json {
  if (operation.value === undefined) throw new DoesNotApply("it has no `value`");
  checkNesting(operation.value, path);
  return operation.value;
}

function checkNesting(value: Json, at: Pointer): void {
  if (isDeeperThan(value, JSON_DEPTH_MAX - at.length)) {
    throw new DoesNotApply(`the document would nest deeper than ${JSON_DEPTH_MAX} levels`);
  }
}

type Pointer = readonly string[];

/** RFC 6901: `/metadata/annotations/a~1b` is ["metadata", "annotations", "a/b"]. */
function parsePointer(text: unknown, field: string): Pointer {
  if (typeof text !== "string")
    throw new DoesNotApply(`its \`${field}\` is ${describeJson(text)}, not a string`);
  if (text === "") return [];
  if (!text.startsWith("/")) throw new DoesNotApply(`its \`${field}\` does not begin with "/"`);
  const tokens = text.slice(1).split("/");
  if (tokens.length > JSON_DEPTH_MAX)
    throw new DoesNotApply(`its \`${field}\` has more than ${JSON_DEPTH_MAX} parts`);
  return tokens.map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The inverse of `parsePointer`, one token at a time. */
export function escapePointerToken(token: string): string {
  return token.replaceAll("~", "~0").replaceAll("/", "~1");
}

type Container = readonly Json[] | JsonObject;
type OwnContainer = Json[] | { [key: string]: Json | undefined };

function lastOf(path: Pointer): string {
  return path[path.length - 1] ?? "";
}

function parentOf(root: Json, path: Pointer): Container {
  let node: Json | undefined = root;
  for (const token of path.slice(0, -1)) node = read(container(node), token);
  return container(node);
}

/** The same walk, replacing each container on the way by one that may be changed. */
function ownParent(draft: Draft, path: Pointer): OwnContainer {
  let node = own(draft, draft.root);
  draft.root = node;
  for (const token of path.slice(0, -1)) {
    const child = own(draft, read(node, token));
    if (Array.isArray(node)) node[indexIn(token, node.length)] = child;
    else setMember(node, token, child);
    node = child;
  }
  return node;
}

function own(draft: Draft, value: Json | undefined): OwnContainer {
  const found = container(value);
  if (draft.owned.has(found)) return found as OwnContainer;
  const copy: OwnContainer = isJsonList(found) ? [...found] : { ...found };
  draft.owned.add(copy);
  return copy;
}

function container(value: Json | undefined): Container {
  if (typeof value === "object" && value !== null) return value;
  throw new DoesNotApply("a part of its path is missing or is neither object nor list");
}

function read(parent: Container, key: string): Json | undefined {
  return isJsonList(parent) ? parent[indexIn(key, parent.length)] : memberOf(parent, key);
}

const INDEX = /^(0|[1-9][0-9]{0,8})$/;

function indexIn(token: string, length: number): number {
  const index = INDEX.test(token) ? Number(token) : length;
  if (index >= length) throw new DoesNotApply(`"${token}" is not an index in that list`);
  return index;
}

/** Assigning to `__proto__` would set the prototype; defining makes it a member like any other. */
function setMember(object: { [key: string]: Json | undefined }, key: string, value: Json): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[key] = value;
  }
}
