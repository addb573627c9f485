/**
 * What a strategic merge patch must know about a kind, and nothing else. One node of the schema is one
 * field: how its value is patched and what its own fields are. The embedded API server derives it from
 * the table of all fields; a client needs only the few fields that differ from the default, below.
 *
 * A field nobody described (`field` answers undefined) takes the default: objects merge, lists are replaced.
 */
export interface PatchSchema {
  /** Of an object: merge or replace it. Of a list: merge its elements or replace it whole. */
  readonly strategy: "merge" | "replace";
  /** The member that tells elements of a merged list apart; a merged list without one is a set of scalars. */
  readonly mergeKey?: string;
  /** Patches made for this field list the keys that stay (`$retainKeys`): a union whose arms exclude each other. */
  readonly retainKeys?: boolean;
  /** The schema of a member: of this object, or of each element where this is a list. */
  field(name: string): PatchSchema | undefined;
}

type Fields = Readonly<Record<string, PatchSchema>>;

function object(fields: Fields): PatchSchema {
  return { strategy: "merge", field: (name) => (Object.hasOwn(fields, name) ? fields[name] : undefined) };
}

/** A list whose elements pair by `mergeKey`. */
function keyed(mergeKey: string, fields: Fields = {}): PatchSchema {
  return { ...object(fields), mergeKey };
}

const set = object({});

const metadata = object({ finalizers: set, ownerReferences: keyed("uid") });

const container = {
  env: keyed("name"),
  ports: keyed("containerPort"),
  volumeDevices: keyed("devicePath"),
  volumeMounts: keyed("mountPath"),
};

const volume = { ephemeral: object({ volumeClaimTemplate: object({ metadata }) }) };

const resourceClaimStatus = {
  mapping: keyed("name"),
  overhead: keyed("name"),
};

/** Any kind of which only metadata has lists that merge: PersistentVolume, VolumeAttachment, Lease, ConfigMap ... */
export const objectPatchSchema: PatchSchema = object({ metadata });

/** `volumesAttached` and `volumesInUse` are replaced whole, so whoever writes them must own all of them. */
export const nodePatchSchema: PatchSchema = object({
  metadata,
  spec: object({ podCIDRs: set }),
  status: object({ conditions: keyed("type"), addresses: keyed("type") }),
});

export const podPatchSchema: PatchSchema = object({
  metadata,
  spec: object({
    containers: keyed("name", container),
    initContainers: keyed("name", container),
    ephemeralContainers: keyed("name", container),
    volumes: { ...keyed("name", volume), retainKeys: true },
    resourceClaims: { ...keyed("name"), retainKeys: true },
    evictionResponders: keyed("name"),
    hostAliases: keyed("ip"),
    imagePullSecrets: keyed("name"),
    schedulingGates: keyed("name"),
    topologySpreadConstraints: keyed("topologyKey"),
  }),
  status: object({
    conditions: keyed("type"),
    hostIPs: keyed("ip"),
    podIPs: keyed("ip"),
    resourceClaimStatuses: { ...keyed("name"), retainKeys: true },
    nodeAllocatableResourceClaimStatuses: keyed("resourceClaimName", resourceClaimStatus),
  }),
});

export const persistentVolumeClaimPatchSchema: PatchSchema = object({
  metadata,
  status: object({
    conditions: keyed("type"),
    healthStatus: object({ healthConditions: keyed("status") }),
  }),
});

export const csiNodePatchSchema: PatchSchema = object({
  metadata,
  spec: object({ drivers: keyed("name") }),
  status: object({ storageHealth: keyed("name") }),
});
