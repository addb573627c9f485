import type { Resource } from "../kube/object.ts";

/** A kind as this server serves it, with the rules in which kinds differ (spec/apiserver.md, section 3). */
export interface Kind extends Resource {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /**
   * Whether there is a `/status`, and what it does to metadata: `accept` takes labels, annotations and
   * finalizers from the request, `restore` keeps all that is stored.
   */
  readonly status: "none" | "accept" | "restore";
  /** What a DELETE that removes the object answers with. */
  readonly deleteAnswer: "object" | "status";
  /** PUT to a name that is free creates the object. */
  readonly createOnUpdate: boolean;
  /** PUT without a resourceVersion replaces whatever is there; otherwise it is 422. */
  readonly unconditionalUpdate: boolean;
  /** `from-1` counts changes of the spec from 1 at creation, `from-absent` begins with the first change. */
  readonly generation: "none" | "from-1" | "from-absent";
  readonly deleteCollection: boolean;
  readonly nameRule: "subdomain" | "label" | "label-1035" | "path-segment";
  /** The kind in whose spelling its objects are kept, where that is another; see spelling.ts. */
  readonly storedAs?: Kind;
}

export function storedKind(kind: Kind): Kind {
  return kind.storedAs ?? kind;
}

export type KindSpec = Pick<Kind, "group" | "version" | "kind" | "plural" | "namespaced"> & Partial<Kind>;

/** What most kinds are like. */
export function kind(spec: KindSpec): Kind {
  return {
    singular: spec.kind.toLowerCase(),
    shortNames: [],
    categories: [],
    status: "none",
    deleteAnswer: "status",
    createOnUpdate: false,
    unconditionalUpdate: true,
    generation: "none",
    deleteCollection: true,
    nameRule: "subdomain",
    ...spec,
  };
}
