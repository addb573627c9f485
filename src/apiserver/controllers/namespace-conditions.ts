import type { NamespaceCondition } from "kubernetes-types/core/v1.js";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";

/** What is still in a namespace that is being deleted. */
export interface Remaining {
  readonly objects: number;
  readonly byKind: ReadonlyMap<Kind, number>;
  readonly byFinalizer: ReadonlyMap<string, number>;
}

export function countRemaining(objects: Iterable<readonly [Kind, ApiObject]>): Remaining {
  const byKind = new Map<Kind, number>();
  const byFinalizer = new Map<string, number>();
  let count = 0;
  for (const [kind, { metadata }] of objects) {
    count++;
    byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
    for (const finalizer of metadata.finalizers ?? []) {
      byFinalizer.set(finalizer, (byFinalizer.get(finalizer) ?? 0) + 1);
    }
  }
  return { objects: count, byKind, byFinalizer };
}

/**
 * The five conditions by which people find out what a namespace waits for. Texts and reasons are upstream's, because
 * people search for them. A time moves only with its status.
 */
export function namespaceConditions(
  before: readonly NamespaceCondition[],
  { byKind, byFinalizer, failure }: Remaining & { readonly failure: string | undefined },
  now: string,
): NamespaceCondition[] {
  const kinds = sorted(
    byKind,
    ({ plural, group }, count) => `${plural}.${group} has ${count} resource instances`,
  );
  const finalizers = sorted(byFinalizer, (name, count) => `${name} in ${count} resource instances`);
  const next = [
    fine("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    fine(
      "NamespaceDeletionGroupVersionParsingFailure",
      "ParsedGroupVersions",
      "All legacy kube types successfully parsed",
    ),
    failure === undefined
      ? fine(
          "NamespaceDeletionContentFailure",
          "ContentDeleted",
          "All content successfully deleted, may be waiting on finalization",
        )
      : wrong(
          "NamespaceDeletionContentFailure",
          "ContentDeletionFailed",
          `Failed to delete all resource types, 1 remaining: ${failure}`,
        ),
    kinds === ""
      ? fine("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed")
      : wrong("NamespaceContentRemaining", "SomeResourcesRemain", `Some resources are remaining: ${kinds}`),
    finalizers === ""
      ? fine(
          "NamespaceFinalizersRemaining",
          "ContentHasNoFinalizers",
          "All content-preserving finalizers finished",
        )
      : wrong(
          "NamespaceFinalizersRemaining",
          "SomeFinalizersRemain",
          `Some content in the namespace has finalizers remaining: ${finalizers}`,
        ),
  ].map((condition) => withTime(condition, before, now));
  const own = new Set(next.map(({ type }) => type));
  return [...before.filter(({ type }) => !own.has(type)), ...next];
}

type Untimed = Pick<NamespaceCondition, "type" | "status" | "reason" | "message">;

function fine(type: string, reason: string, message: string): Untimed {
  return { type, status: "False", reason, message };
}

function wrong(type: string, reason: string, message: string): Untimed {
  return { type, status: "True", reason, message };
}

function withTime(
  { type, status, reason, message }: Untimed,
  before: readonly NamespaceCondition[],
  now: string,
): NamespaceCondition {
  const old = before.find((condition) => condition.type === type);
  const lastTransitionTime = old?.status === status ? (old.lastTransitionTime ?? now) : now;
  return { type, status, lastTransitionTime, reason, message } as NamespaceCondition;
}

function sorted<K>(counts: ReadonlyMap<K, number>, render: (key: K, count: number) => string): string {
  return Array.from(counts, ([key, count]) => render(key, count))
    .sort()
    .join(", ");
}
