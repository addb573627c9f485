import { referenceTo } from "../kube/events/events.ts";
import { keyOf, type KubeObject, type ObjectKey, type Resource } from "../kube/object.ts";
import type { StorageDeps } from "./deps.ts";
import { WAITING_REASONS, type Told, type Waiting } from "./waiting.ts";

/**
 * Says things once: an event when it is news, and as a metric how many objects wait for what.
 *
 * Bound: an entry for each object that waits or was told of; it goes with the object.
 */
export interface Teller {
  say<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    words: { readonly tell?: Told | undefined; readonly waitingFor?: Waiting | undefined },
  ): void;
  forget(key: ObjectKey): void;
  waits(): ReadonlyMap<ObjectKey, Waiting>;
}

export function createTeller(
  { events, metrics }: Pick<StorageDeps, "events" | "metrics">,
  companion: "binder" | "provisioner" | "resizer" | "snapshotter",
): Teller {
  const told = new Map<ObjectKey, string>();
  const waits = new Map<ObjectKey, Waiting>();
  metrics.gauge({
    name: "mooring_storage_waiting",
    help: "Claims, volumes and snapshots that wait, by companion and by what they wait for.",
    labels: ["companion", "reason"],
    collect(gauge) {
      const counts = new Map<string, number>();
      for (const { reason } of waits.values()) counts.set(reason, (counts.get(reason) ?? 0) + 1);
      for (const reason of WAITING_REASONS) gauge.set(counts.get(reason) ?? 0, { companion, reason });
    },
  });
  return {
    say(resource, object, { tell, waitingFor }) {
      const key = keyOf(object);
      if (waitingFor) waits.set(key, waitingFor);
      else waits.delete(key);
      if (!tell) return;
      const words = `${object.metadata.uid} ${tell.reason} ${tell.message}`;
      if (told.get(key) === words) return;
      told.set(key, words);
      events.record({ ref: referenceTo(resource, object), ...tell });
    },
    forget(key) {
      told.delete(key);
      waits.delete(key);
    },
    waits: () => waits,
  };
}
