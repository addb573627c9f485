import { describe, expect, test } from "vitest";
import recording from "../../../test/fixtures/apiserver/09-tables.json" with { type: "json" };
import { StatusError } from "../errors.ts";
import { findKind, KINDS, type Kind } from "../kinds.ts";
import { contentType, negotiate, type Endpoint } from "../negotiate/accept.ts";
import {
  clockAtRecording,
  stepsOf,
  withoutColumn,
  withoutDescriptions,
  type RecordedObject,
  type RecordedStep,
} from "../negotiate/recordings.testing.ts";
import { createRepresenter } from "../negotiate/representations.ts";
import { effectiveDefaultClass } from "./storage.ts";
import type { ApiObject } from "../objects.ts";

/**
 * The recorded tables of a real server, replayed on the objects of the same recording. Verbs have no part in it: the
 * objects are put together here, with what defaulting adds to them where a column shows it.
 */
const DEFAULTED: Readonly<Record<string, object>> = {
  namespaces: { status: { phase: "Active" } },
  secrets: { type: "Opaque", data: { a: "Yg==", c: "ZA==" } },
  persistentvolumes: { spec: { volumeMode: "Filesystem" } },
  persistentvolumeclaims: { spec: { volumeMode: "Filesystem" } },
};
const DEFAULTED_METADATA: Readonly<Record<string, object>> = {
  namespaces: { labels: { "kubernetes.io/metadata.name": "g09" } },
  persistentvolumes: { finalizers: ["kubernetes.io/pv-protection"] },
  persistentvolumeclaims: { finalizers: ["kubernetes.io/pvc-protection"] },
};

const steps = stepsOf(recording);
const objects = steps.filter(({ setup }) => setup).reduce(prepare, new Map<string, ApiObject>());

describe("recorded tables", () => {
  for (const [index, step] of steps.entries()) {
    if (step.setup) continue;
    const { method, path } = step.request;
    test(`${index}: ${method} ${path} ${step.note ?? ""}`, () => {
      const { status, body } = expectedOf(step);

      const answer = replay(step);

      // Deltas: classes of attributes are newer than the recorded release.
      const compared = withoutColumn(withoutDescriptions(answer.body), "VolumeAttributesClass");
      expect(answer.status).toBe(status);
      if (status === 406) expect(compared).toMatchObject({ code: 406, reason: "NotAcceptable" });
      else if (step.note === "fallback to plain") expect(compared).toMatchObject(body as object);
      else expect(compared).toEqual(body);
    });
  }
});

/** The event of the recording is of the first of January; what it is shown as was left out of the recording. */
function expectedOf({ request, response: { status, body } }: RecordedStep): {
  status: number;
  body: unknown;
} {
  if (!request.path.endsWith("/events")) return { status, body };
  return { status, body: JSON.parse(JSON.stringify(body).replaceAll('"30s"', '"318d"')) };
}

function replay(step: RecordedStep): { status: number; body: unknown } {
  const { method, headers } = step.request;
  const [path = "", search] = step.request.path.split("?");
  const query = new URLSearchParams(search);
  const { kind, name } = resourceOf(path);
  const endpoint: Endpoint = method === "GET" && name === undefined ? "list" : "object";
  try {
    const negotiated = negotiate(headers["Accept"], endpoint);
    const { as } = negotiated;
    expect(contentType(negotiated)).toBe(step.response.headers?.["content-type"]);
    const representer = createRepresenter(
      { clock: clockAtRecording(), defaultStorageClass: () => effectiveDefaultClass(objects.values()) },
      { as, kind, query },
    );
    if (endpoint === "list") {
      const page = { items: listed(path, query), next: undefined, remaining: undefined };
      return { status: 200, body: JSON.parse(representer.list(20, page) as string) };
    }
    const { status } = step.response;
    return { status, body: JSON.parse(representer.object(JSON.stringify(answerOf(step, kind, path)))) };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { status: error.status.code, body: error.status };
  }
}

/** What a verb would hand over to be represented: an object, or the Status it was answered with. */
function answerOf(step: RecordedStep, kind: Kind, path: string): unknown {
  const { method, body } = step.request;
  if (method === "POST") return toStored(kind, path, body!, { uid: "<UID-16>", resourceVersion: "21" });
  return objects.get(path) ?? step.response.body;
}

function prepare(prepared: Map<string, ApiObject>, { request, response }: RecordedStep) {
  const { method, path, body } = request;
  const { kind } = resourceOf(path);
  const { uid, resourceVersion } = (response.body as RecordedObject).metadata;
  if (method === "POST") {
    const object = toStored(kind, path, body!, { uid, resourceVersion });
    return prepared.set(`${path}/${String(object.metadata.name)}`, object);
  }
  const item = path.replace(/\/status$/, "");
  const old = prepared.get(item)!;
  const metadata = { ...old.metadata, resourceVersion: String(resourceVersion) };
  return prepared.set(item, { ...old, metadata, status: body!["status"] });
}

function toStored(kind: Kind, path: string, body: RecordedObject, metadata: object): ApiObject {
  const namespace = /\/namespaces\/([^/]+)\//.exec(path)?.[1];
  const { metadata: own, spec, stringData: _stringData, ...rest } = body;
  const { spec: defaultedSpec, ...defaulted } = (DEFAULTED[kind.plural] ?? {}) as { spec?: object };
  return {
    kind: kind.kind,
    apiVersion: kind.group === "" ? kind.version : `${kind.group}/${kind.version}`,
    metadata: {
      ...own,
      ...(namespace === undefined ? {} : { namespace }),
      ...metadata,
      creationTimestamp: "2026-11-15T18:00:00Z",
      ...DEFAULTED_METADATA[kind.plural],
    },
    ...rest,
    ...(spec === undefined && defaultedSpec === undefined
      ? {}
      : { spec: { ...(spec as object | undefined), ...defaultedSpec } }),
    ...defaulted,
  };
}

function listed(path: string, query: URLSearchParams): { text: string }[] {
  const name = query.get("fieldSelector")?.replace("metadata.name=", "");
  const stored = path.replace("/apis/events.k8s.io/v1", "/api/v1");
  return [...objects]
    .filter(
      ([key, object]) =>
        key.startsWith(`${stored}/`) && (name ?? object.metadata.name) === object.metadata.name,
    )
    .filter(([key]) => !key.slice(stored.length + 1).includes("/"))
    .map(([, object]) => ({ text: JSON.stringify(object) }));
}

function resourceOf(path: string): { kind: Kind; name: string | undefined } {
  const [, prefix, ...segments] = path.split("/");
  const group = prefix === "api" ? "" : (segments.shift() ?? "");
  const version = segments.shift() ?? "";
  if (segments[0] === "namespaces" && segments.length > 2) segments.splice(0, 2);
  const [plural = "", name] = segments;
  // Events are the same objects in both groups.
  const kind = findKind(group, version, plural) ?? KINDS.find((each) => each.plural === plural);
  return { kind: kind!, name };
}
