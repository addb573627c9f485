import { createSeededRandom } from "../../base/seeded-random.ts";
import { isJsonList, isJsonObject, type Json } from "../../kube/patch/json.ts";
import { applyMergePatch } from "../../kube/patch/merge-patch.ts";
import { apiVersionOf, resourceName } from "../../kube/object.ts";
import { StatusError } from "../errors.ts";
import { findKind, KINDS, type Kind } from "../kinds.ts";
import { generateName } from "../names.ts";
import { toTimestamp, type ApiObject } from "../objects.ts";
import { completeObject } from "../schema/complete.ts";
import { DecodeFailure } from "../schema/decode-failure.ts";
import { decodeFields } from "../schema/decode.ts";
import { knownSchema } from "../schema/schema.ts";
import type { AdmissionDeps } from "./admission.ts";
import { decideCreate, decideUpdate } from "./decide.ts";
import { toCoreEvent, toNewEvent } from "./event-spelling.ts";
import { without } from "./loose.ts";

/** For tests: requests that a real server was sent, and its answers, replayed through the rules alone. */
export interface Step {
  readonly setup?: boolean;
  readonly note?: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers?: Readonly<Record<string, string | undefined>>;
    readonly body?: unknown;
  };
  readonly response: { readonly status: number; readonly body?: unknown };
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Stands for a server: it keeps objects in their short form and knows POST, PUT, merge PATCH, GET and DELETE. */
export class Replay {
  readonly #objects = new Map<string, ApiObject>();
  readonly #deps: AdmissionDeps;
  #seconds = Date.parse("2026-01-01T00:00:00Z") / 1_000;

  constructor() {
    const random = createSeededRandom("replay");
    this.#deps = {
      getObject: (resource, namespace, name) => this.#objects.get(keyOf(resource, namespace, name)),
      listObjects: (resource) =>
        [...this.#objects].filter(([key]) => key.startsWith(`${resource} `)).map(([, object]) => object),
      random,
    };
  }

  /** The answer, or undefined for a step that is decided before there is an object to judge. */
  answer({ request }: Step): Answer | undefined {
    // Each step a second later, so that "the newest" means something.
    const now = new Date(this.#seconds++ * 1_000);
    try {
      return this.#answer(request, now);
    } catch (error) {
      if (error instanceof StatusError) return { status: error.status.code, body: error.status };
      if (error instanceof DecodeFailure) return undefined;
      throw error;
    }
  }

  find(path: string): ApiObject | undefined {
    const { resource, namespace, name } = parsePath(path);
    return this.#objects.get(keyOf(resource, namespace, name));
  }

  put(path: string, object: ApiObject): void {
    const { resource, namespace, name } = parsePath(path);
    this.#objects.set(keyOf(resource, namespace, name), object);
  }

  /** Every object, and what becomes of it when a client sends it back as it got it. */
  putAgain(): { before: ApiObject; after: ApiObject }[] {
    return [...this.#objects].map(([key, before]) => {
      const [resource = ""] = key.split(" ");
      const kind = KINDS.find((one) => resourceName(one) === resource);
      if (kind === undefined) throw new Error(`no kind for ${resource}`);
      const object = keepMetadata(decode(kind, show(kind, before)), before);
      const update = { kind, object, old: before, subresource: undefined, now: new Date(0) };
      return { before, after: decideUpdate(this.#deps, update) };
    });
  }

  #answer(request: Step["request"], now: Date): Answer {
    const { kind, resource, namespace, name, subresource } = parsePath(request.path);
    const key = keyOf(resource, namespace, name);
    const old = this.#objects.get(key);
    const body = expand(request.body);
    switch (request.method) {
      case "POST": {
        const created = decideCreate(
          this.#deps,
          { kind, object: newObject(kind, decode(kind, body), { namespace, now }, this.#deps), now },
          { taintNewNodes: true },
        );
        this.#objects.set(keyOf(resource, namespace, created.metadata.name ?? ""), created);
        return { status: 201, body: show(kind, created) };
      }
      case "PUT":
      case "PATCH": {
        if (old === undefined) return { status: 404, body: undefined };
        const wanted = request.method === "PUT" ? body : applyMergePatch(show(kind, old), body);
        const object = keepMetadata(decode(kind, wanted), old);
        const next = decideUpdate(this.#deps, { kind, object, old, subresource, now });
        this.#objects.set(key, next);
        return { status: 200, body: show(kind, next) };
      }
      case "DELETE":
        this.#objects.delete(key);
        return { status: old === undefined ? 404 : 200, body: undefined };
      default:
        return old === undefined ? { status: 404, body: undefined } : { status: 200, body: show(kind, old) };
    }
  }
}

function newObject(
  kind: Kind,
  object: ApiObject,
  { namespace, now }: { namespace: string | undefined; now: Date },
  { random }: AdmissionDeps,
): ApiObject {
  const { generateName: prefix = "" } = object.metadata;
  return {
    ...object,
    metadata: {
      ...(prefix === "" ? {} : { name: generateName(prefix, random) }),
      ...object.metadata,
      ...(kind.namespaced && namespace !== undefined ? { namespace } : {}),
      uid: UID,
      creationTimestamp: toTimestamp(now),
    },
  };
}

function keepMetadata(object: ApiObject, old: ApiObject): ApiObject {
  const { name, namespace, uid, creationTimestamp, deletionTimestamp } = old.metadata;
  const own = { name, namespace, uid, creationTimestamp, deletionTimestamp };
  const kept = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
  return { ...object, metadata: { ...object.metadata, ...kept } };
}

function decode(kind: Kind, body: unknown): ApiObject {
  const decoded = decodeFields(knownSchema(kind), body).object;
  const object = { ...decoded, metadata: decoded["metadata"] ?? {} } as ApiObject;
  const typed = { ...object, kind: kind.kind, apiVersion: apiVersionOf(kind) };
  return kind.group === "events.k8s.io" ? toCoreEvent(typed) : typed;
}

function show(kind: Kind, object: ApiObject): ApiObject {
  return completeObject(kind, kind.group === "events.k8s.io" ? toNewEvent(object) : object);
}

interface Target {
  readonly kind: Kind;
  /** What its objects are stored under; both spellings of events share one. */
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly subresource: "status" | undefined;
}

function parsePath(path: string): Target {
  const [, , group = "", version = "", rest = ""] =
    /^\/(api|apis\/([^/]+))\/([^/]+)\/([^?]*)/.exec(path) ?? [];
  const segments = rest.split("/");
  const isIn = segments[0] === "namespaces" && segments.length > 2 && segments[2] !== "status";
  const [plural = "", name = "", subresource] = isIn ? segments.slice(2) : segments;
  const core = findKind("", "v1", plural);
  const kind =
    group === "events.k8s.io" && core !== undefined ? { ...core, group } : findKind(group, version, plural);
  if (kind === undefined) throw new Error(`no kind for ${path}`);
  return {
    kind,
    resource: plural === "events" ? "events" : resourceName(kind),
    namespace: isIn ? segments[1] : undefined,
    name,
    subresource: subresource === "status" ? "status" : undefined,
  };
}

function keyOf(resource: string, namespace: string | undefined, name: string): string {
  return `${resource} ${namespace ?? ""}/${name}`;
}

const UID = "00000000-0000-4000-8000-000000000000";

/** Puts values for placeholders: `<1100 x>` stands for 1100 letters, versions are not compared here. */
function expand(value: unknown): unknown {
  if (typeof value === "string") {
    return value
      .replace(/^<(\d+) (.)>$/, (_, count: string, letter: string) => letter.repeat(Number(count)))
      .replace(/^<RV(-\d+)?>$/, "1")
      .replace(/^<UID-\d+>$/, UID)
      .replace(/^<TIME-\d+>$/, "2026-01-01T00:00:00Z");
  }
  if (isJsonList(value)) return value.map(expand);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, expand(member)]));
}

/** An answer as far as the rules make it: without what the server itself or a newer release adds. */
export function comparable(body: unknown): unknown {
  if (!isJsonObject(body)) return body;
  const { metadata, spec, status } = body as Readonly<Record<string, Json | undefined>>;
  return {
    ...body,
    ...(isJsonObject(metadata) ? { metadata: without(metadata, ...SERVER_METADATA) } : {}),
    ...(isJsonObject(spec) ? { spec: without(spec, "seLinuxMount", "preventPodSchedulingIfMissing") } : {}),
    ...(isJsonObject(status) ? { status: without(status, "lastPhaseTransitionTime") } : {}),
  };
}

const SERVER_METADATA = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"];

/**
 * `actual` with what has the shape of a placeholder of `expected` (`<SUFFIX>`, `<TIME-1>`) replaced by it;
 * where only part of an answer was recorded, without the members that are not in it.
 */
export function align(expected: unknown, actual: unknown, { isPart }: { isPart: boolean }): unknown {
  if (typeof expected === "string" && typeof actual === "string")
    return matches(expected, actual) ? expected : actual;
  if (isJsonList(expected) && isJsonList(actual)) {
    return actual.map((item, index) =>
      index < expected.length ? align(expected[index], item, { isPart }) : item,
    );
  }
  if (!isJsonObject(expected) || !isJsonObject(actual)) return actual;
  return Object.fromEntries(
    Object.entries(actual)
      .filter(([key]) => !isPart || key in expected)
      .map(([key, value]) => [key, key in expected ? align(expected[key], value, { isPart }) : value]),
  );
}

function matches(expected: string, actual: string): boolean {
  if (/^<TIME-\d+>$/.test(expected)) return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(actual);
  if (!expected.includes("<")) return false;
  const letters = /^<(\d+) (.)>$/.exec(expected);
  if (letters !== null) return actual === (letters[2] ?? "").repeat(Number(letters[1]));
  const pattern = expected.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replace("<SUFFIX>", "[a-z0-9]{5}");
  return expected.includes("<SUFFIX>") && new RegExp(`^${pattern}$`).test(actual);
}
