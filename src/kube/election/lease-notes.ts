import { leases, type Lease } from "../api/lease.ts";
import type { Client } from "../client/client.ts";
import { isKubeError } from "../errors.ts";

/**
 * A note on the Lease, for whoever leads next. The leader renews its Lease every two seconds anyway, so what changes all the
 * time costs no request of its own. It is kept through take-overs until another leader has a note, so it must be true for
 * ever: "at version V it was so", never "it is so".
 */
export interface LeaseNotes {
  /** Of whoever led before; undefined where there is none. Rejects with a KubeError. */
  read(signal: AbortSignal): Promise<string | undefined>;
  /** Asked at every renewal from now on; undefined leaves the note that is there. Answers how to end it. */
  carry(note: () => string | undefined): () => void;
}

const ANNOTATION = "mooring.dev/note";

type LeaseClient = Pick<Client, "get" | "create" | "update">;

/** The client is for the election: its renewals carry the note. */
export function createLeaseNotes(
  client: LeaseClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): LeaseNotes & { readonly client: LeaseClient } {
  let current: (() => string | undefined) | undefined;

  const update: LeaseClient["update"] = (resource, object, options) => {
    const note = resource.plural === leases.plural ? current?.() : undefined;
    if (note === undefined) return client.update(resource, object, options);
    const annotations = { ...object.metadata.annotations, [ANNOTATION]: note };
    return client.update(resource, { ...object, metadata: { ...object.metadata, annotations } }, options);
  };

  return {
    client: {
      get: (resource, ref, options) => client.get(resource, ref, options),
      create: (resource, object, options) => client.create(resource, object, options),
      update,
    },
    async read(signal) {
      try {
        const lease: Lease = await client.get(leases, { namespace, name }, { signal });
        return lease.metadata.annotations?.[ANNOTATION];
      } catch (error) {
        if (isKubeError(error, "NotFound")) return undefined;
        throw error;
      }
    },
    carry(note) {
      current = note;
      return () => {
        if (current === note) current = undefined;
      };
    },
  };
}
