import { Controller, GroupController, Identity, Node, SnapshotMetadata } from "../csi/gen/csi_pb.ts";
import { serve, type CallRecord, type ServedMethod } from "../csi/methods.ts";
import { withCauses } from "./answers.ts";
import { createContext, type Context, type DriverDeps } from "./context.ts";
import { createController } from "./controller.ts";
import { createGroups } from "./groups.ts";
import { createIdentity } from "./identity.ts";
import { createNode } from "./node.ts";
import { withDefaults, type DriverOptions } from "./options.ts";
import { recover } from "./recovery.ts";
import { createSnapshotMetadata } from "./snapshot-metadata.ts";
import { createSoundness } from "./soundness.ts";

export interface LoopDriver {
  /** Undoes or finishes what a killed process left. Until it has ended Probe says not ready. */
  recover(): Promise<void>;
  /** The functions behind the socket. */
  readonly methods: readonly ServedMethod[];
  /** Told of every call, so that Probe can tell a broken driver. */
  observe(call: CallRecord): void;
  /** Why it cannot serve as it should; undefined while all is well. Cheap: asked at every probe. */
  problem(): string | undefined;
  usage(): Promise<DriverUsage>;
  counts(): {
    readonly volumes: number;
    readonly snapshots: number;
    readonly attachments: number;
    readonly staged: number;
    /** Without a record that can be read. */
    readonly damaged: number;
  };
  /** What is there without a record that can be read: kept, and not used, until somebody has looked at it. */
  damaged(): Promise<readonly Damaged[]>;
  /** Records that can still be written on a full disk: `RESERVE_SPARES` while there is room. */
  spares(): number;
}

export interface Damaged {
  readonly kind: "volume" | "ephemeral volume" | "snapshot" | "group snapshot";
  readonly id: string;
  readonly path: string;
  /** Undefined once it has a record again, which the next start reads. */
  readonly why: string | undefined;
}

export interface DriverUsage {
  /** What volumes and snapshots may grow to hold. */
  readonly promisedBytes: bigint;
  /** What their images take on the disk now. */
  readonly usedBytes: bigint;
  readonly poolFreeBytes: bigint;
  readonly poolTotalBytes: bigint;
  /** Devices with one of our images behind them. */
  readonly loopDevices: number;
}

/** A CSI driver whose volumes are image files on this machine. It starts nothing by itself. */
export function createLoopDriver(deps: DriverDeps, options: DriverOptions): LoopDriver {
  const settings = withDefaults(options);
  // -1 is for tests of callers that must cope with any limit.
  const attachLimit = settings.attachLimit === -1 ? 1 + deps.random.int(10) : settings.attachLimit;
  const context = createContext(deps, { ...settings, attachLimit });
  let ready = false;
  const soundness = createSoundness();
  const missingTool = () => {
    const missing = deps.host.filesystems.missingTool();
    return missing === undefined ? undefined : `${missing} is not installed on this machine`;
  };
  const problem = () => missingTool() ?? soundness.problem();
  const { serves } = context.settings;
  return {
    async recover() {
      await recover(context);
      ready = true;
    },
    methods: withCauses([
      ...serve(Identity, createIdentity(context, { isReady: () => ready, problem })),
      ...(serves === "node" ? [] : serve(Controller, createController(context))),
      ...(serves === "node" ? [] : serve(GroupController, createGroups(context))),
      ...(serves === "node" || !settings.snapshotMetadata
        ? []
        : serve(SnapshotMetadata, createSnapshotMetadata(context))),
      ...(serves === "controller" ? [] : serve(Node, createNode(context))),
    ]),
    observe: (call) => soundness.observe(call),
    problem: () => problem() ?? (ready ? undefined : "recovery has not ended"),
    usage: () => usageOf(context),
    counts: () => ({
      volumes: context.volumes.all().length,
      snapshots: context.snapshots.all().length,
      attachments: context.volumes.all().reduce((sum, { attachments }) => sum + attachments.length, 0),
      staged: context.staged.all().length,
      damaged: damagedTables(context).reduce((sum, { table }) => sum + table.damaged().length, 0),
    }),
    spares: () => context.reserve.spares(),
    damaged: async () =>
      (
        await Promise.all(
          damagedTables(context).map(({ kind, table, directory }) =>
            Promise.all(
              table.damaged().map(async (id) => ({
                kind,
                id,
                path: `${directory}/${id}`,
                why: await table.damage(id),
              })),
            ),
          ),
        )
      ).flat(),
  };
}

function damagedTables({ volumes, ephemerals, snapshots, groups, paths }: Context) {
  return [
    { kind: "volume" as const, table: volumes, directory: paths.volumes },
    { kind: "ephemeral volume" as const, table: ephemerals, directory: paths.ephemeral },
    { kind: "snapshot" as const, table: snapshots, directory: paths.snapshots },
    { kind: "group snapshot" as const, table: groups, directory: paths.groups },
  ];
}

/** One look at each image; a scrape a minute of 1,000 volumes is 17 a second. */
async function usageOf({ host, paths, volumes, snapshots, ephemerals }: Context): Promise<DriverUsage> {
  const disks = [...volumes.all(), ...ephemerals.all()];
  const records = [...disks, ...snapshots.all()];
  const images = [
    ...disks.map(({ id }) => paths.volumeImage(id)),
    ...snapshots.all().map(({ id }) => paths.snapshotImage(id)),
  ];
  const found = (await Promise.all(images.map((path) => host.files.stat(path)))).filter(
    (one) => one !== undefined,
  );
  const ours = new Set(found.map(({ identity }) => identity));
  const { freeBytes, totalBytes } = await host.images.pool(paths.root);
  return {
    promisedBytes: records.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n),
    usedBytes: found.reduce((sum, { allocatedBytes }) => sum + allocatedBytes, 0n),
    poolFreeBytes: freeBytes,
    poolTotalBytes: totalBytes,
    loopDevices: (await host.loops.list()).filter(({ backing }) => ours.has(backing)).length,
  };
}
