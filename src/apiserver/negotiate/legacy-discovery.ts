import { createHash } from "node:crypto";
import { unknownResource } from "../errors.ts";
import type { ServedGroup, ServedResource, ServedSubresource } from "./catalogue.ts";

/**
 * Discovery as it was before it was aggregated: a document a group and one a group version (spec/apiserver.md,
 * section 16). kubectl falls back to it, and sidecars ask for single group versions to learn what there is.
 */

export function coreVersions(catalogue: readonly ServedGroup[], serverAddress: string): object {
  const core = catalogue.find(({ name }) => name === "");
  return {
    kind: "APIVersions",
    versions: core?.versions.map(({ version }) => version) ?? [],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress }],
  };
}

export function groupList(catalogue: readonly ServedGroup[]): object {
  return { kind: "APIGroupList", apiVersion: "v1", groups: named(catalogue).map(describeGroup) };
}

export function groupOf(catalogue: readonly ServedGroup[], name: string): object {
  const group = named(catalogue).find((served) => served.name === name);
  if (group === undefined) throw unknownResource();
  return { kind: "APIGroup", apiVersion: "v1", ...describeGroup(group) };
}

export function resourceList(catalogue: readonly ServedGroup[], group: string, version: string): object {
  const served = catalogue
    .find(({ name }) => name === group)
    ?.versions.find((each) => each.version === version);
  if (served === undefined) throw unknownResource();
  return {
    kind: "APIResourceList",
    // The core group's documents are older than the field, and have never been given it.
    ...(group === "" ? {} : { apiVersion: "v1" }),
    groupVersion: group === "" ? version : `${group}/${version}`,
    resources: served.resources.flatMap(describeResource),
  };
}

/** What `/` answers: where to look. `others` are paths besides those of the API. */
export function paths(catalogue: readonly ServedGroup[], others: readonly string[]): object {
  const groups = named(catalogue).flatMap(({ name, versions }) => [
    `/apis/${name}`,
    ...versions.map(({ version }) => `/apis/${name}/${version}`),
  ]);
  return { paths: ["/api", "/api/v1", "/apis", ...groups, ...others].sort() };
}

/** The core group has no name and is found under /api. */
function named(catalogue: readonly ServedGroup[]): readonly ServedGroup[] {
  return catalogue.filter(({ name }) => name !== "");
}

function describeGroup({ name, versions }: ServedGroup): object {
  const described = versions.map(({ version }) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions: described, preferredVersion: described[0] };
}

function describeResource(resource: ServedResource): readonly object[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories, subresources } = resource;
  const hash = storageVersionHash(resource);
  return [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames.length === 0 ? {} : { shortNames }),
      ...(categories.length === 0 ? {} : { categories }),
      ...(hash === undefined ? {} : { storageVersionHash: hash }),
    },
    ...subresources.map((subresource) => describeSubresource(resource, subresource)),
  ];
}

function describeSubresource(
  { plural, namespaced }: ServedResource,
  { name, group, version, kind, verbs }: ServedSubresource,
): object {
  return {
    name: `${plural}/${name}`,
    singularName: "",
    namespaced,
    ...(group === undefined ? {} : { group }),
    ...(version === undefined ? {} : { version }),
    kind,
    verbs,
  };
}

/** Eight bytes that change when objects are kept in another form; the same as the real server's. */
function storageVersionHash({ storedIn, version, kind }: ServedResource): string | undefined {
  if (storedIn === undefined) return undefined;
  const digest = createHash("sha256").update(`${storedIn}/${version}/${kind}`).digest();
  return digest.subarray(0, 8).toString("base64");
}
