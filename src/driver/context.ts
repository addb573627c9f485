import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { failedPrecondition, notFound, quoted } from "./errors.ts";
import type { Host } from "./host.ts";
import { createLocks, type Locks } from "./locks.ts";
import type { Settings } from "./options.ts";
import { createPools, type Pools } from "./pools.ts";
import { createReserve, type Reserve } from "./reserve.ts";
import {
  createTable,
  ID,
  type GroupRecord,
  type NodeRecord,
  type SnapshotRecord,
  type Table,
  type VolumeRecord,
} from "./records.ts";

export interface DriverDeps {
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** What every call works on. */
export interface Context extends DriverDeps {
  readonly settings: Settings;
  readonly paths: Paths;
  readonly locks: Locks;
  readonly pools: Pools;
  readonly reserve: Reserve;
  readonly volumes: Table<VolumeRecord>;
  /** Volumes of this node's pods: the node service makes and removes them, and no other process knows of them. */
  readonly ephemerals: Table<VolumeRecord>;
  readonly snapshots: Table<SnapshotRecord>;
  readonly groups: Table<GroupRecord>;
  /** Of this node; ours alone to write. */
  readonly staged: Table<NodeRecord>;
  /** Of one volume on every node of the pool, as on disk now: other node services may run beside us. */
  stagedAnywhere(volumeId: string): Promise<readonly NodeRecord[]>;
  /** Refuses where a node has a record of this volume that cannot be understood: it may be staged there. */
  refuseUnknownStaging(volumeId: string): Promise<void>;
}

export interface Paths {
  readonly root: string;
  readonly volumes: string;
  readonly snapshots: string;
  readonly groups: string;
  readonly nodes: string;
  /** Ephemeral volumes, a directory a node. */
  readonly ephemerals: string;
  readonly ephemeral: string;
  readonly node: string;
  /** Ours alone, so that clearing it cannot hurt another process of the pool. */
  readonly tmp: string;
  readonly reserves: string;
  /** Ours alone as well. */
  readonly reserve: string;
  volume(id: string): string;
  volumeImage(id: string): string;
  snapshotImage(id: string): string;
}

export function createContext(deps: DriverDeps, settings: Settings): Context {
  const paths = pathsOf(settings);
  const { tmp } = paths;
  const reserve = createReserve(deps, { parent: paths.reserves, directory: paths.reserve });
  const volumes = createTable<VolumeRecord>(deps, {
    directory: paths.volumes,
    tmp,
    layout: "folder",
    reserve,
  });
  const snapshots = createTable<SnapshotRecord>(deps, {
    directory: paths.snapshots,
    tmp,
    layout: "folder",
    reserve,
  });
  const tableOfNode = (directory: string) =>
    createTable<NodeRecord>(deps, { directory, tmp, layout: "file", reserve });

  return {
    ...deps,
    settings,
    paths,
    locks: createLocks(deps, (key) => {
      const id = key.startsWith("volume/") ? key.slice("volume/".length) : "";
      return ID.test(id) ? paths.volume(id) : undefined;
    }),
    reserve,
    pools: createPools(settings, { volumes, snapshots }),
    volumes,
    ephemerals: createTable<VolumeRecord>(deps, {
      directory: paths.ephemeral,
      tmp,
      layout: "folder",
      reserve,
    }),
    snapshots,
    groups: createTable<GroupRecord>(deps, { directory: paths.groups, tmp, layout: "file", reserve }),
    staged: tableOfNode(paths.node),
    async stagedAnywhere(volumeId) {
      const directories = await deps.host.files.list(paths.nodes);
      const found = await Promise.all(
        directories.map((name) => tableOfNode(`${paths.nodes}/${name}`).read(volumeId)),
      );
      return found.filter((record) => record !== undefined);
    },
    async refuseUnknownStaging(volumeId) {
      for (const name of await deps.host.files.list(paths.nodes)) {
        const why = await tableOfNode(`${paths.nodes}/${name}`).damage(volumeId);
        if (why === undefined) continue;
        const where = `${paths.nodes}/${name}/${volumeId}.json`;
        throw failedPrecondition(
          `volume ${volumeId} may be staged: ${why} (${where}); the start of that node's driver makes it anew`,
        );
      }
    },
  };
}

/** A node id is the orchestrator's word, so it is hashed before it names a directory. */
export function nodeDirectoryName(nodeId: string): string {
  return createHash("sha256").update(nodeId).digest("hex").slice(0, 16);
}

export function pathsOf({
  stateDir,
  nodeId,
  serves,
}: Pick<Settings, "stateDir" | "nodeId" | "serves">): Paths {
  const root = stateDir.replace(/\/+$/, "");
  const node = nodeDirectoryName(nodeId);
  const who = serves === "node" ? node : "controller";
  const volume = (id: string) =>
    id.startsWith("eph-") ? `${root}/ephemeral/${node}/${id}` : `${root}/volumes/${id}`;
  return {
    root,
    volumes: `${root}/volumes`,
    snapshots: `${root}/snapshots`,
    groups: `${root}/groups`,
    nodes: `${root}/node`,
    ephemerals: `${root}/ephemeral`,
    ephemeral: `${root}/ephemeral/${node}`,
    node: `${root}/node/${node}`,
    tmp: `${root}/tmp/${who}`,
    reserves: `${root}/reserve`,
    reserve: `${root}/reserve/${who}`,
    volume,
    volumeImage: (id) => `${volume(id)}/image.raw`,
    snapshotImage: (id) => `${root}/snapshots/${id}/image.raw`,
  };
}

/** A finished volume, or NOT_FOUND: one that is being made or removed does not exist for anybody else. */
export async function readyVolume(context: Context, id: string): Promise<VolumeRecord> {
  const record = await tableOf(context, id).read(id);
  if (record?.phase === "ready") return record;
  if (record === undefined) await refuseDamaged(tableOf(context, id), "volume", id);
  throw notFound(`volume ${quoted(id)} does not exist`);
}

/** What has no valid record is neither used nor removed: whether somebody needs it cannot be told. */
export async function refuseDamaged(
  table: Pick<Table<VolumeRecord>, "damage">,
  kind: "volume" | "snapshot" | "group snapshot",
  id: string,
): Promise<void> {
  const why = await table.damage(id);
  if (why === undefined) return;
  throw failedPrecondition(
    `${kind} ${id} is damaged: ${why}. Everything of it is kept; put its record back from a backup, or remove its directory by hand`,
  );
}

/** Where the record of a volume is, by its id. */
export function tableOf({ volumes, ephemerals }: Context, id: string): Table<VolumeRecord> {
  return id.startsWith("eph-") ? ephemerals : volumes;
}
