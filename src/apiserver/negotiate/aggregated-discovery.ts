import { createHash } from "node:crypto";
import type { HandlerResponse } from "../../kube/handler.ts";
import { contentType, type DiscoveryVersion } from "./accept.ts";
import type { ServedGroup, ServedResource, ServedSubresource } from "./catalogue.ts";

/**
 * All groups, versions and resources in two documents, `/api` and `/apis`, instead of one a group version
 * (spec/apiserver.md, section 16). kubectl keeps them on disk and asks with their ETag whether they still hold.
 */
export interface AggregatedDiscovery {
  /** `path` is the one asked for; `ifNoneMatch` the header of that name. */
  answer(path: "/api" | "/apis", version: DiscoveryVersion, ifNoneMatch: string | undefined): HandlerResponse;
}

export function createAggregatedDiscovery(catalogue: readonly ServedGroup[]): AggregatedDiscovery {
  const documents = new Map<string, Document>();

  /** Made on first use and kept; there are four. */
  function documentFor(path: string, version: DiscoveryVersion): Document {
    const key = `${path} ${version}`;
    const made = documents.get(key) ?? render(catalogue, path, version);
    documents.set(key, made);
    return made;
  }

  return {
    answer(path, version, ifNoneMatch) {
      const { body, etag } = documentFor(path, version);
      const headers = { etag, vary: "Accept", "cache-control": "public" };
      if (isMatch(ifNoneMatch, etag)) return { status: 304, headers, body: "" };
      const type = contentType({ as: { kind: "discovery", version }, encoding: "json" });
      return { status: 200, headers: { "content-type": type, ...headers }, body };
    },
  };
}

interface Document {
  readonly body: string;
  /** With its quotes. */
  readonly etag: string;
}

function render(catalogue: readonly ServedGroup[], path: string, version: DiscoveryVersion): Document {
  const groups = catalogue.filter(({ name }) => (name === "") === (path === "/api"));
  const list = {
    kind: "APIGroupDiscoveryList",
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map(describeGroup),
  };
  const body = `${JSON.stringify(list)}\n`;
  return { body, etag: `"${createHash("sha256").update(body).digest("hex").toUpperCase()}"` };
}

function isMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}

function describeGroup({ name, versions }: ServedGroup): object {
  return {
    metadata: name === "" ? {} : { name },
    versions: versions.map(({ version, resources }) => ({
      version,
      resources: resources.map(describeResource),
      freshness: "Current",
    })),
  };
}

function describeResource(resource: ServedResource): object {
  const { plural, kind, namespaced, singular, verbs, shortNames, categories, subresources } = resource;
  return {
    resource: plural,
    // Empty group and version mean those around it.
    responseKind: { group: "", version: "", kind },
    scope: namespaced ? "Namespaced" : "Cluster",
    singularResource: singular,
    verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(subresources.length === 0 ? {} : { subresources: subresources.map(describeSubresource) }),
  };
}

function describeSubresource({ name, kind, group = "", version = "", verbs }: ServedSubresource): object {
  return { subresource: name, responseKind: { group, version, kind }, verbs };
}
