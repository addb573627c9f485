import { collectionPath } from "../../kube/object.ts";
import type { JsonObject } from "../../kube/patch/json.ts";
import type { ServedResource, ServedSubresource } from "../negotiate/catalogue.ts";
import type { VerbName } from "../verb-names.ts";
import { DELETE_OPTIONS, PATCH, STATUS, type Components } from "./openapi-schemas.ts";
import { knownSchema, type GroupVersionKind } from "./schema.ts";

/** The paths of a resource with their operations, as far as clients read them (spec/apiserver.md, section 16). */
export function describePaths(components: Components, resource: ServedResource): JsonObject {
  const { namespaced, subresources } = resource;
  const collection = collectionPath(resource, namespaced ? "NAMESPACE" : undefined).replace(
    "NAMESPACE",
    "{namespace}",
  );
  const inCollection = namespaced ? [inPath("namespace")] : [];
  const inItem = [...inCollection, inPath("name")];
  const paths = {
    [collection]: { parameters: inCollection, ...operations(components, resource, COLLECTION_VERBS) },
    [`${collection}/{name}`]: { parameters: inItem, ...operations(components, resource, ITEM_VERBS) },
  };
  for (const subresource of subresources) {
    const path = `${collection}/{name}/${subresource.name}`;
    paths[path] = { parameters: inItem, ...subresourceOperations(components, resource, subresource) };
  }
  return Object.fromEntries(Object.entries(paths).filter(([, item]) => Object.keys(item).length > 1));
}

type Method = "get" | "put" | "post" | "patch" | "delete";

const COLLECTION_VERBS = ["list", "create", "deletecollection"] as const;
const ITEM_VERBS = ["get", "update", "patch", "delete"] as const;

const METHODS: Readonly<Record<Exclude<VerbName, "watch">, Method>> = {
  list: "get",
  create: "post",
  deletecollection: "delete",
  get: "get",
  update: "put",
  patch: "patch",
  delete: "delete",
};

function operations(
  components: Components,
  resource: ServedResource,
  verbs: readonly Exclude<VerbName, "watch">[],
): JsonObject {
  const served = verbs.filter((verb) => resource.verbs.includes(verb));
  const entries = served.map((verb) => [METHODS[verb], describeVerb(components, resource, verb)] as const);
  // kubectl looks for a `patch` to learn whether a kind takes `fieldValidation`, and without one falls back to
  // OpenAPI v2, which is not served: `kubectl create -f review.yaml` would fail. So where a kind can only be
  // created, one is described that the server answers with 405.
  const isCreateOnly = served.includes("create") && !resource.verbs.includes("patch");
  const patch = isCreateOnly ? { patch: describeVerb(components, resource, "patch") } : {};
  return { ...Object.fromEntries(entries), ...patch };
}

/** What it takes and gives may be a kind of another group: an eviction belongs to `policy`. */
function subresourceOperations(
  components: Components,
  parent: ServedResource,
  { group = parent.group, version = parent.version, kind, verbs }: ServedSubresource,
): JsonObject {
  const served = verbs.filter((verb) => verb !== "watch");
  return Object.fromEntries(
    served.map((verb) => [METHODS[verb], describeVerb(components, { group, version, kind }, verb)]),
  );
}

const WRITE_PARAMETERS = [query("dryRun"), query("fieldManager"), query("fieldValidation")];
const DELETE_PARAMETERS = [
  query("dryRun"),
  query("gracePeriodSeconds", "integer"),
  query("orphanDependents", "boolean"),
  query("propagationPolicy"),
];
const LIST_PARAMETERS = [
  query("allowWatchBookmarks", "boolean"),
  query("continue"),
  query("fieldSelector"),
  query("labelSelector"),
  query("limit", "integer"),
  query("resourceVersion"),
  query("resourceVersionMatch"),
  query("sendInitialEvents", "boolean"),
  query("timeoutSeconds", "integer"),
  query("watch", "boolean"),
];

interface OperationParts {
  readonly parameters?: readonly JsonObject[];
  readonly body?: JsonObject;
  readonly answer?: JsonObject;
}

function describeVerb(
  components: Components,
  gvk: GroupVersionKind,
  verb: Exclude<VerbName, "watch">,
): JsonObject {
  const { group, version, kind } = gvk;
  const { parameters, body, answer } = partsOf(components, gvk, verb);
  const [code, description] = verb === "create" ? ["201", "Created"] : ["200", "OK"];
  return {
    ...(parameters === undefined ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { content: body } }),
    responses: { [code]: { description, content: { "application/json": { schema: answer } } } },
    "x-kubernetes-action": METHODS[verb],
    "x-kubernetes-group-version-kind": { group, version, kind },
  };
}

function partsOf(
  components: Components,
  gvk: GroupVersionKind,
  verb: Exclude<VerbName, "watch">,
): Required<Pick<OperationParts, "answer">> & OperationParts {
  const schema = knownSchema(gvk);
  const answer = components.ref(schema.name);
  switch (verb) {
    case "get":
      return { answer };
    case "list":
      return { parameters: LIST_PARAMETERS, answer: components.listRef(schema, gvk) };
    case "create":
    case "update":
      return { parameters: WRITE_PARAMETERS, body: contentOf(["*/*"], answer), answer };
    case "patch": {
      const body = contentOf(patchTypesOf(gvk), components.ref(PATCH));
      return { parameters: [...WRITE_PARAMETERS, query("force", "boolean")], body, answer };
    }
    case "delete":
    case "deletecollection": {
      const body = contentOf(["*/*"], components.ref(DELETE_OPTIONS));
      return { parameters: DELETE_PARAMETERS, body, answer: components.ref(STATUS) };
    }
  }
}

function contentOf(types: readonly string[], schema: JsonObject): JsonObject {
  return Object.fromEntries(types.map((type) => [type, { schema }]));
}

const PATCH_TYPES = [
  "application/apply-patch+yaml",
  "application/json-patch+json",
  "application/merge-patch+json",
];

/** kubectl computes strategic patches from these documents wherever they are said to be taken. */
function patchTypesOf(gvk: GroupVersionKind): readonly string[] {
  return knownSchema(gvk).isCustom ? PATCH_TYPES : [...PATCH_TYPES, "application/strategic-merge-patch+json"];
}

function query(name: string, type = "string"): JsonObject {
  return { name, in: "query", schema: { type, uniqueItems: true } };
}

function inPath(name: string): JsonObject {
  return { name, in: "path", required: true, schema: { type: "string", uniqueItems: true } };
}
