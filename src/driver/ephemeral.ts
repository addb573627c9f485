import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  NodePublishVolumeRequestSchema,
  NodeStageVolumeRequestSchema,
  NodeUnpublishVolumeRequestSchema,
  NodeUnstageVolumeRequestSchema,
  type NodePublishVolumeRequest,
  type NodeUnpublishVolumeRequest,
} from "../csi/gen/csi_pb.ts";
import type { Context } from "./context.ts";
import { invalid, toAnswer } from "./errors.ts";
import { EPHEMERAL_VOLUME_BYTES } from "./options.ts";
import { toPath } from "./paths.ts";
import { publishVolume, unpublishVolume } from "./publish.ts";
import { ID, LETTING_GO } from "./records.ts";
import { checkLeft } from "./released.ts";
import { stageVolume, unstageVolume } from "./stage.ts";
import { checkPresent, toCapability, type Capability } from "./validate.ts";
import { realise, removeVolume } from "./volumes.ts";

/**
 * Volumes that live as long as a pod: NodePublishVolume with `csi.storage.k8s.io/ephemeral` makes, stages and publishes
 * one, NodeUnpublishVolume takes it down and deletes it. Each part may be repeated, so a call that was cut off is
 * carried on by its retry.
 */
export function isEphemeral({ volumeContext }: NodePublishVolumeRequest): boolean {
  return volumeContext["csi.storage.k8s.io/ephemeral"] === "true";
}

/** The orchestrator chose its id; ours is made of it, so that it names a directory safely and a retry finds it. */
export function knownAs(volumeId: string): string {
  if (ID.test(volumeId)) return volumeId;
  const hex = createHash("sha256").update(volumeId).digest("hex");
  return `eph-${[hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-")}`;
}

/** The orchestrator makes no staging directory for it. */
const stagingOf = ({ paths }: Context, id: string) => `${paths.volume(id)}/mount`;

export async function publishEphemeral(context: Context, request: NodePublishVolumeRequest): Promise<void> {
  const { volumeId, targetPath, volumeCapability, readonly } = request;
  checkPresent(volumeId, "volume_id");
  toPath(targetPath, "target_path");
  const capability = toCapability(volumeCapability);
  if (capability.accessType === "block")
    throw invalid("an ephemeral volume is a filesystem, not a raw device");
  const id = knownAs(volumeId);
  const stagingTargetPath = stagingOf(context, id);
  await context.locks.hold([{ key: `name/ephemeral/${id}` }], async () => {
    try {
      await ensureVolume(context, id, capability);
      await context.host.files.makeDirectory(stagingTargetPath, 0o700);
      const common = {
        volumeId: id,
        stagingTargetPath,
        ...(volumeCapability === undefined ? {} : { volumeCapability }),
      };
      await stageVolume(context, create(NodeStageVolumeRequestSchema, common));
      await publishVolume(
        context,
        create(NodePublishVolumeRequestSchema, { ...common, targetPath, readonly }),
      );
      await noteUsed(context, id);
    } catch (error) {
      // A failed first try leaves nothing. Later ones, as after a reboot, must not cost the pod its data.
      const record = await context.ephemerals.read(id);
      const isUsed = record !== undefined && record.unused !== true;
      const targets = context.staged.get(id)?.targets.length ?? 0;
      if (!isUsed && targets === 0) await remove(context, id);
      throw error;
    }
  });
}

/** Before the answer: from here on its pod may have written to it. */
async function noteUsed({ ephemerals }: Context, id: string): Promise<void> {
  const record = await ephemerals.read(id);
  if (record?.unused !== true) return;
  const { unused: _, ...used } = record;
  await ephemerals.put(used);
}

async function ensureVolume(context: Context, id: string, capability: Capability): Promise<void> {
  const { settings, clock, ephemerals } = context;
  if ((await ephemerals.read(id))?.phase === "ready") return;
  await realise(context, {
    id,
    name: `ephemeral/${id}`,
    phase: "creating",
    sizeBytes: EPHEMERAL_VOLUME_BYTES,
    accessType: "mount",
    fsType: capability.fsType,
    thick: false,
    kind: "",
    parameters: {},
    mutableParameters: {},
    createdAt: clock.wall().toISOString(),
    // Nobody attaches it: it is this node's from the first moment.
    attachments: [{ nodeId: settings.nodeId, readonly: false, capability }],
    unused: true,
  });
}

export async function unpublishEphemeral(
  context: Context,
  request: NodeUnpublishVolumeRequest,
): Promise<void> {
  const id = knownAs(request.volumeId);
  if (id === request.volumeId) return;
  const isKnown = context.staged.get(id) !== undefined || (await context.ephemerals.read(id)) !== undefined;
  if (!isKnown) return checkLeft(context, id, toPath(request.targetPath, "target_path"));
  await context.locks.hold([{ key: `name/ephemeral/${id}` }], async () => {
    const { targetPath } = request;
    await unpublishVolume(context, create(NodeUnpublishVolumeRequestSchema, { volumeId: id, targetPath }));
    if ((context.staged.get(id)?.targets.length ?? 0) === 0) await remove(context, id);
  });
}

async function remove(context: Context, id: string): Promise<void> {
  const stagingTargetPath = stagingOf(context, id);
  await unstageVolume(context, create(NodeUnstageVolumeRequestSchema, { volumeId: id, stagingTargetPath }));
  try {
    await context.host.files.removeDirectory(stagingTargetPath);
    const record = await context.ephemerals.read(id);
    if (record === undefined) {
      await keepDamaged(context, id);
      return;
    }
    await context.ephemerals.put({ ...record, phase: "deleting" }, LETTING_GO);
    await removeVolume(context, id);
  } catch (error) {
    throw toAnswer(error, `remove the ephemeral volume ${id}`);
  }
}

/** Let go of, but not removed: without its record its image may be anybody's. */
async function keepDamaged(context: Context, id: string): Promise<void> {
  const why = await context.ephemerals.damage(id);
  if (why === undefined) return context.host.files.removeDirectory(context.paths.volume(id));
  context.log.error("ephemeral volume kept", { volume: id, why, next: "remove its directory by hand" });
}
