import { MIB } from "./options.ts";
import { blockCapability, mountCapability, type Peer } from "./stage.testing.ts";

/** The whole life of a volume as a list of calls that each may be repeated, for tests that cut it off anywhere. */
export interface Life {
  readonly ids: Record<string, string>;
  readonly calls: readonly LifeCall[];
}

export interface LifeCall {
  readonly name: string;
  run(peer: Peer): Promise<void>;
}

export interface LifePlace {
  readonly stagingTargetPath: string;
  readonly targetPath: string;
  /** After the volume was published for the first time, and after each later time. */
  readonly write: (targetPath: string) => Promise<void>;
  readonly verify: (targetPath: string) => Promise<void>;
}

export function lifeOf(
  { stagingTargetPath, targetPath, write, verify }: LifePlace,
  access: "mount" | "block",
): Life {
  const ids: Record<string, string> = {};
  const volumeCapability = access === "mount" ? mountCapability() : blockCapability();
  const call = (name: string, run: (peer: Peer) => Promise<unknown>): LifeCall => ({
    name,
    async run(peer) {
      await run(peer);
    },
  });
  const create = (name: string, snapshot?: string) =>
    call(`create ${name}`, async ({ controller }) => {
      const { volume } = await controller.createVolume({
        name,
        volumeCapabilities: [volumeCapability],
        capacityRange: { requiredBytes: 32n * MIB },
        ...(snapshot === undefined
          ? {}
          : {
              volumeContentSource: {
                type: { case: "snapshot" as const, value: { snapshotId: ids[snapshot] ?? "" } },
              },
            }),
      });
      ids[name] = volume?.volumeId ?? "";
    });
  const idOf = (name: string) => ids[name] ?? "";
  const up = (name: string) => [
    call(`attach ${name}`, ({ controller }) =>
      controller.controllerPublishVolume({ volumeId: idOf(name), nodeId: "node-1", volumeCapability }),
    ),
    call(`stage ${name}`, ({ node }) =>
      node.nodeStageVolume({ volumeId: idOf(name), stagingTargetPath, volumeCapability }),
    ),
    call(`publish ${name}`, ({ node }) =>
      node.nodePublishVolume({
        volumeId: idOf(name),
        stagingTargetPath,
        targetPath,
        volumeCapability,
        readonly: name === "copy",
      }),
    ),
  ];
  const down = (name: string) => [
    call(`unpublish ${name}`, ({ node }) => node.nodeUnpublishVolume({ volumeId: idOf(name), targetPath })),
    call(`unstage ${name}`, ({ node }) =>
      node.nodeUnstageVolume({ volumeId: idOf(name), stagingTargetPath }),
    ),
    call(`detach ${name}`, ({ controller }) =>
      controller.controllerUnpublishVolume({ volumeId: idOf(name), nodeId: "node-1" }),
    ),
  ];
  const remove = (name: string) =>
    call(`delete ${name}`, ({ controller }) => controller.deleteVolume({ volumeId: idOf(name) }));
  const snapshot = call("snapshot", async ({ controller }) => {
    const answer = await controller.createSnapshot({ name: "snap", sourceVolumeId: idOf("disk") });
    ids.snap = answer.snapshot?.snapshotId ?? "";
  });
  return {
    ids,
    calls: [
      create("disk"),
      ...up("disk"),
      call("write", () => write(targetPath)),
      ...(access === "mount" ? [snapshot] : []),
      call("look", () => verify(targetPath)),
      ...down("disk"),
      // On most filesystems a raw device is not copied while it can be written.
      ...(access === "block" ? [snapshot] : []),
      call("expand disk", ({ controller }) =>
        controller.controllerExpandVolume({
          volumeId: idOf("disk"),
          capacityRange: { requiredBytes: 48n * MIB },
        }),
      ),
      ...up("disk"),
      call("look again", () => verify(targetPath)),
      ...down("disk"),
      remove("disk"),
      create("copy", "snap"),
      ...up("copy"),
      call("look at copy", () => verify(targetPath)),
      ...down("copy"),
      call("delete snapshot", ({ controller }) => controller.deleteSnapshot({ snapshotId: ids.snap ?? "" })),
      remove("copy"),
    ],
  };
}
