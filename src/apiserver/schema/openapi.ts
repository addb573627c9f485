import { createHash } from "node:crypto";
import type { HandlerResponse } from "../../kube/handler.ts";
import type { ServedGroup, ServedVersion } from "../negotiate/catalogue.ts";
import { KUBERNETES_VERSION } from "../version.ts";
import { describePaths } from "./openapi-paths.ts";
import { Components } from "./openapi-schemas.ts";

/**
 * OpenAPI v3: one document a group version, and an index of them (spec/apiserver.md, section 16). kubectl
 * reads them before it creates, applies, edits or explains anything. They carry no descriptions, which
 * makes that of the core group 150 kB instead of a megabyte.
 *
 * Documents are made from the field table when they are first asked for, and kept as text.
 */
export interface OpenApi {
  /** The answer to `/openapi/v3` and what is below it; undefined for a path that names no document. */
  respond(request: OpenApiRequest): HandlerResponse | undefined;
}

export interface OpenApiRequest {
  /** Behind `/openapi/v3/`: empty for the index, else as `apis/storage.k8s.io/v1`. */
  readonly path: string;
  /** The `hash` of the query, by which clients keep a document for ever. */
  readonly hash: string | null;
  readonly ifNoneMatch: string | undefined;
  /** For the date until which a document may be kept. */
  readonly now: Date;
}

interface Document {
  readonly text: string;
  readonly hash: string;
}

const YEAR_MS = 365 * 24 * 3_600_000;

export function createOpenApi(catalogue: readonly ServedGroup[]): OpenApi {
  const sources = new Map(
    catalogue.flatMap(({ name, versions }) =>
      versions.map((version) => [pathOf(name, version), () => renderDocument(version)] as const),
    ),
  );
  const documents = new Map<string, Document>();
  let index: Document | undefined;

  function documentAt(path: string): Document | undefined {
    const kept = documents.get(path);
    const render = sources.get(path);
    if (kept !== undefined || render === undefined) return kept;
    const document = toDocument(render());
    documents.set(path, document);
    return document;
  }

  function renderIndex(): Document {
    const paths = [...sources.keys()].map((path) => {
      const serverRelativeURL = `/openapi/v3/${path}?hash=${documentAt(path)?.hash ?? ""}`;
      return [path, { serverRelativeURL }];
    });
    return toDocument({ paths: Object.fromEntries(paths) as object });
  }

  return {
    respond(request) {
      const document = request.path === "" ? (index ??= renderIndex()) : documentAt(request.path);
      return document === undefined ? undefined : answer(request, document);
    },
  };
}

function pathOf(group: string, { version }: ServedVersion): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

function renderDocument({ resources }: ServedVersion): object {
  const components = new Components();
  const paths = resources.map((resource) => describePaths(components, resource));
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: `v${KUBERNETES_VERSION.major}.${KUBERNETES_VERSION.minor}.0` },
    paths: Object.assign({}, ...paths) as object,
    components: { schemas: components.toJson() },
  };
}

function toDocument(value: object): Document {
  const text = JSON.stringify(value);
  return { text, hash: createHash("sha256").update(text).digest("hex").toUpperCase() };
}

/** A document that was asked for by its hash never changes; under a hash of yesterday it has moved. */
function answer(
  { path, hash, ifNoneMatch, now }: OpenApiRequest,
  { text, hash: current }: Document,
): HandlerResponse {
  if (hash !== null && hash !== "" && hash !== current) {
    return { status: 301, headers: { location: `/openapi/v3/${path}?hash=${current}` }, body: "" };
  }
  const etag = `"${current}"`;
  const headers = {
    "content-type": "application/json",
    etag,
    vary: "Accept",
    ...(hash === current
      ? {
          "cache-control": "public, immutable",
          expires: new Date(now.getTime() + YEAR_MS).toUTCString(),
        }
      : { "cache-control": "no-cache, private" }),
  };
  return ifNoneMatch === etag ? { status: 304, headers, body: "" } : { status: 200, headers, body: text };
}
