import { unknownResource } from "./errors.ts";
import { GROUPS, KINDS, versionsOf, type Kind } from "./kinds.ts";

/** The legacy discovery documents (spec/apiserver.md, section 16), built from the table of kinds. */

export function coreVersions(serverAddress: string): object {
  return {
    kind: "APIVersions",
    versions: versionsOf(""),
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress }],
  };
}

export function groupList(): object {
  return { kind: "APIGroupList", apiVersion: "v1", groups: NAMED_GROUPS.map(describeGroup) };
}

export function groupOf(group: string): object {
  return { kind: "APIGroup", apiVersion: "v1", ...describeGroup(group) };
}

export function resourceList(group: string, version: string): object {
  const kinds = KINDS.filter((kind) => kind.group === group && kind.version === version);
  if (kinds.length === 0) throw unknownResource();
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: group === "" ? version : `${group}/${version}`,
    resources: kinds.flatMap(describeResource),
  };
}

/** What `/` answers: where to look. */
export function paths(): object {
  const groups = NAMED_GROUPS.flatMap((group) => [
    `/apis/${group}`,
    ...versionsOf(group).map((version) => `/apis/${group}/${version}`),
  ]);
  return {
    paths: ["/api", "/api/v1", "/apis", ...groups, "/healthz", "/livez", "/metrics", "/readyz", "/version"],
  };
}

/** The core group has no name and is found under /api. */
const NAMED_GROUPS = GROUPS.filter((group) => group !== "");

function describeGroup(group: string): {
  name: string;
  versions: object[];
  preferredVersion: object | undefined;
} {
  const versions = versionsOf(group).map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions, preferredVersion: versions[0] };
}

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

function describeResource(kind: Kind): object[] {
  const { plural, singular, namespaced, shortNames, categories } = kind;
  const resource = {
    name: plural,
    singularName: singular,
    namespaced,
    kind: kind.kind,
    verbs: VERBS.filter((verb) => verb !== "deletecollection" || kind.deleteCollection),
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
  };
  if (kind.status === "none") return [resource];
  const status = { name: `${plural}/status`, singularName: "", namespaced, kind: kind.kind };
  return [resource, { ...status, verbs: ["get", "patch", "update"] }];
}
