import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { notFound, quoted } from "./errors.ts";
import type { Host } from "./host.ts";
import { createLocks, type Locks } from "./locks.ts";
import type { Settings } from "./options.ts";
import { createPools, type Pools } from "./pools.ts";
import {
  createTable,
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
  readonly volumes: Table<VolumeRecord>;
  readonly snapshots: Table<SnapshotRecord>;
  readonly groups: Table<GroupRecord>;
  /** Of this node; ours alone to write. */
  readonly staged: Table<NodeRecord>;
  /** Of one volume on every node of the pool, as on disk now: other node services may run beside us. */
  stagedAnywhere(volumeId: string): Promise<readonly NodeRecord[]>;
}

export interface Paths {
  readonly root: string;
  readonly volumes: string;
  readonly snapshots: string;
  readonly groups: string;
  readonly nodes: string;
  /** Staging directories of ephemeral volumes, which the orchestrator does not make. */
  readonly ephemeral: string;
  readonly node: string;
  /** Ours alone, so that clearing it cannot hurt another process of the pool. */
  readonly tmp: string;
  volumeImage(id: string): string;
  snapshotImage(id: string): string;
}

export function createContext(deps: DriverDeps, settings: Settings): Context {
  const paths = pathsOf(settings);
  const { tmp } = paths;
  const volumes = createTable<VolumeRecord>(deps, { directory: paths.volumes, tmp, layout: "folder" });
  const snapshots = createTable<SnapshotRecord>(deps, { directory: paths.snapshots, tmp, layout: "folder" });
  const tableOfNode = (directory: string) =>
    createTable<NodeRecord>(deps, { directory, tmp, layout: "file" });

  return {
    ...deps,
    settings,
    paths,
    locks: createLocks(deps.clock),
    pools: createPools(settings, { volumes, snapshots }),
    volumes,
    snapshots,
    groups: createTable<GroupRecord>(deps, { directory: paths.groups, tmp, layout: "file" }),
    staged: tableOfNode(paths.node),
    async stagedAnywhere(volumeId) {
      const directories = await deps.host.files.list(paths.nodes);
      const found = await Promise.all(
        directories.map((name) => tableOfNode(`${paths.nodes}/${name}`).read(volumeId)),
      );
      return found.filter((record) => record !== undefined);
    },
  };
}

function pathsOf({ stateDir, nodeId, serves }: Settings): Paths {
  const root = stateDir.replace(/\/+$/, "");
  // A node id is the orchestrator's word, so it is hashed before it names a directory.
  const node = createHash("sha256").update(nodeId).digest("hex").slice(0, 16);
  return {
    root,
    volumes: `${root}/volumes`,
    snapshots: `${root}/snapshots`,
    groups: `${root}/groups`,
    nodes: `${root}/node`,
    ephemeral: `${root}/ephemeral`,
    node: `${root}/node/${node}`,
    tmp: `${root}/tmp/${serves === "node" ? node : "controller"}`,
    volumeImage: (id) => `${root}/volumes/${id}/image.raw`,
    snapshotImage: (id) => `${root}/snapshots/${id}/image.raw`,
  };
}

/** A finished volume, or NOT_FOUND: one that is being made or removed does not exist for anybody else. */
export async function readyVolume({ volumes }: Context, id: string): Promise<VolumeRecord> {
  const record = await volumes.read(id);
  if (record?.phase !== "ready") throw notFound(`volume ${quoted(id)} does not exist`);
  return record;
}
