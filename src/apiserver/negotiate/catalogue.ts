import { resourceName } from "../../kube/object.ts";
import { KINDS, type Kind } from "../kinds.ts";
import type { VerbName } from "../verb-names.ts";

/**
 * Everything that can be called, as clients discover it: the kinds that are stored, their subresources, and resources
 * that only take a question and answer it. Routing and discovery read the same table, so that neither promises what
 * the other does not have.
 */
export interface ServedGroup {
  /** Empty for the core group. */
  readonly name: string;
  /** The preferred one first. */
  readonly versions: readonly ServedVersion[];
}

export interface ServedVersion {
  readonly version: string;
  /** By name. */
  readonly resources: readonly ServedResource[];
}

export interface ServedResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly verbs: readonly VerbName[];
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly ServedSubresource[];
  /** The group in which its objects are kept; absent where nothing is. */
  readonly storedIn?: string;
}

export interface ServedSubresource {
  readonly name: string;
  /** What it takes and gives; its group and version where those are not the parent's. */
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly VerbName[];
}

const SCALE: readonly ServedSubresource[] = [
  { name: "scale", group: "autoscaling", version: "v1", kind: "Scale", verbs: ["get", "patch", "update"] },
];

/** Subresources other than `status`, which the table of kinds knows, by the resource they belong to. */
const SUBRESOURCES: Readonly<Record<string, readonly ServedSubresource[]>> = {
  namespaces: [{ name: "finalize", kind: "Namespace", verbs: ["update"] }],
  "certificatesigningrequests.certificates.k8s.io": [
    { name: "approval", kind: "CertificateSigningRequest", verbs: ["get", "patch", "update"] },
  ],
  replicationcontrollers: SCALE,
  "deployments.apps": SCALE,
  "replicasets.apps": SCALE,
  "statefulsets.apps": SCALE,
  pods: [
    { name: "binding", kind: "Binding", verbs: ["create"] },
    { name: "ephemeralcontainers", kind: "Pod", verbs: ["get", "patch", "update"] },
    { name: "eviction", group: "policy", version: "v1", kind: "Eviction", verbs: ["create"] },
    { name: "resize", kind: "Pod", verbs: ["get", "patch", "update"] },
  ],
  serviceaccounts: [
    {
      name: "token",
      group: "authentication.k8s.io",
      version: "v1",
      kind: "TokenRequest",
      verbs: ["create"],
    },
  ],
};

const AUTHENTICATION = { group: "authentication.k8s.io", namespaced: false };
const AUTHORIZATION = { group: "authorization.k8s.io", namespaced: false };

/** Resources that answer a question and keep nothing. */
const QUESTIONS: readonly ServedResource[] = [
  question({ group: "", namespaced: true, kind: "Binding" }),
  question({ ...AUTHENTICATION, kind: "SelfSubjectReview" }),
  question({ ...AUTHENTICATION, kind: "TokenReview" }),
  question({ ...AUTHORIZATION, kind: "LocalSubjectAccessReview", namespaced: true }),
  question({ ...AUTHORIZATION, kind: "SelfSubjectAccessReview" }),
  question({ ...AUTHORIZATION, kind: "SelfSubjectRulesReview" }),
  question({ ...AUTHORIZATION, kind: "SubjectAccessReview" }),
];

const VERBS: readonly VerbName[] = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "update",
  "watch",
];

/** In the order of the real server, which is the order in which kubectl looks for a short name. */
const GROUP_ORDER = [
  "",
  "apps",
  "events.k8s.io",
  "authentication.k8s.io",
  "authorization.k8s.io",
  "autoscaling",
  "batch",
  "certificates.k8s.io",
  "networking.k8s.io",
  "policy",
  "rbac.authorization.k8s.io",
  "storage.k8s.io",
  "admissionregistration.k8s.io",
  "scheduling.k8s.io",
  "coordination.k8s.io",
  "node.k8s.io",
  "discovery.k8s.io",
  "flowcontrol.apiserver.k8s.io",
  "resource.k8s.io",
  "snapshot.storage.k8s.io",
];

export function createCatalogue(
  kinds: readonly Kind[],
  questions: readonly ServedResource[] = QUESTIONS,
): readonly ServedGroup[] {
  const resources = [...kinds.map(toServed), ...questions].sort((a, b) => (a.plural < b.plural ? -1 : 1));
  const names = [...new Set(resources.map(({ group }) => group))].sort((a, b) => rank(a) - rank(b));
  return names.map((name) => {
    const inGroup = resources.filter(({ group }) => group === name);
    const versions = [...new Set(inGroup.map(({ version }) => version))];
    return {
      name,
      versions: versions.map((version) => ({
        version,
        resources: inGroup.filter((resource) => resource.version === version),
      })),
    };
  });
}

/** What this server serves. */
export const CATALOGUE: readonly ServedGroup[] = createCatalogue(KINDS);

/** The versions served of a group; none where the group is not served. */
export function versionsOf(group: string): readonly string[] {
  return CATALOGUE.find(({ name }) => name === group)?.versions.map(({ version }) => version) ?? [];
}

export function findQuestion(group: string, plural: string): ServedResource | undefined {
  return QUESTIONS.find((question) => question.group === group && question.plural === plural);
}

/** A subresource as a path names it; undefined where the resource has none of that name. */
export function findSubresource(kind: Kind, name: string): ServedSubresource | undefined {
  return subresourcesOf(kind).find((subresource) => subresource.name === name);
}

function rank(group: string): number {
  const index = GROUP_ORDER.indexOf(group);
  return index < 0 ? GROUP_ORDER.length : index;
}

function toServed(kind: Kind): ServedResource {
  const { group, version, plural, singular, namespaced, shortNames, categories } = kind;
  return {
    group,
    version,
    kind: kind.kind,
    plural,
    singular,
    namespaced,
    verbs: VERBS.filter((verb) => verb !== "deletecollection" || kind.deleteCollection),
    shortNames,
    categories,
    subresources: subresourcesOf(kind),
    // Events of both groups are the same objects, kept as those of the core group.
    storedIn: group === "events.k8s.io" ? "" : group,
  };
}

function subresourcesOf(kind: Kind): readonly ServedSubresource[] {
  const own = SUBRESOURCES[resourceName(kind)] ?? [];
  const status = { name: "status", kind: kind.kind, verbs: ["get", "patch", "update"] as const };
  return kind.status === "none" ? own : [...own, status];
}

function question(spec: Pick<ServedResource, "group" | "kind" | "namespaced">): ServedResource {
  const singular = spec.kind.toLowerCase();
  const lists = { shortNames: [], categories: [], subresources: [] };
  return { ...spec, ...lists, version: "v1", plural: `${singular}s`, singular, verbs: ["create"] };
}
