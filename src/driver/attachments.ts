import type { ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest } from "../csi/gen/csi_pb.ts";
import { CsiError } from "../csi/errors.ts";
import { readyVolume, type Context } from "./context.ts";
import { alreadyExists, failedPrecondition, notFound, quoted, toAnswer } from "./errors.ts";
import { ID, LETTING_GO, type Attachment, type VolumeRecord } from "./records.ts";
import { checkPresent, sameCapability, SINGLE_NODE_MODES, toCapability } from "./validate.ts";

/** ControllerPublishVolume and ControllerUnpublishVolume: which nodes may use a volume, and how. */

/** Names the volume, so that a node can refuse a context that belongs to another. Stable for ever. */
export const CONTEXT_VOLUME = "volume";

export interface Attachments {
  publish(
    request: ControllerPublishVolumeRequest,
  ): Promise<{ readonly publishContext: Record<string, string> }>;
  unpublish(request: ControllerUnpublishVolumeRequest): Promise<void>;
}

export function createAttachments(context: Context): Attachments {
  const { settings, volumes, locks, log } = context;
  /** Attachments decided but not yet in a record, as `node volume`: they count against the limit at once. */
  const deciding = new Map<string, string>();

  function checkLimit(nodeId: string, volumeId: string): void {
    if (settings.attachLimit <= 0) return;
    const held = new Set(
      volumes
        .all()
        .filter(({ attachments }) => attachments.some((attachment) => attachment.nodeId === nodeId))
        .map(({ id }) => id),
    );
    for (const [volume, node] of deciding) if (node === nodeId) held.add(volume);
    held.delete(volumeId);
    if (held.size >= settings.attachLimit) {
      const message = `node ${quoted(nodeId)} holds ${held.size} volumes, its limit is ${settings.attachLimit}`;
      throw new CsiError("RESOURCE_EXHAUSTED", message);
    }
  }

  async function attach(record: VolumeRecord, wanted: Attachment): Promise<void> {
    const existing = record.attachments.find(({ nodeId }) => nodeId === wanted.nodeId);
    if (existing !== undefined) {
      if (existing.readonly === wanted.readonly && sameCapability(existing.capability, wanted.capability))
        return;
      throw alreadyExists(`volume ${record.id} is attached to ${quoted(wanted.nodeId)} with other arguments`);
    }
    checkOthers(record, wanted);
    checkLimit(wanted.nodeId, record.id);
    deciding.set(record.id, wanted.nodeId);
    try {
      await volumes.put({ ...record, attachments: [...record.attachments, wanted] });
    } catch (error) {
      throw toAnswer(error, `attach volume ${record.id}`);
    } finally {
      deciding.delete(record.id);
    }
    log.info("volume attached", { volume: record.id, node: wanted.nodeId });
  }

  return {
    async publish(request) {
      const { volumeId, nodeId, readonly } = request;
      checkPresent(volumeId, "volume_id");
      checkPresent(nodeId, "node_id");
      const capability = toCapability(request.volumeCapability);
      await locks.hold([{ key: `volume/${volumeId}` }], async () => {
        const record = await readyVolume(context, volumeId);
        if (nodeId !== settings.nodeId && !settings.nodes.includes(nodeId)) {
          throw notFound(`node ${quoted(nodeId)} does not exist`);
        }
        if (capability.accessType !== record.accessType) {
          throw failedPrecondition(`volume ${volumeId} is a ${record.accessType} volume`);
        }
        await attach(record, { nodeId, readonly, capability });
      });
      return { publishContext: { [CONTEXT_VOLUME]: volumeId } };
    },

    async unpublish({ volumeId, nodeId }) {
      checkPresent(volumeId, "volume_id");
      if (!ID.test(volumeId)) return;
      await locks.hold([{ key: `volume/${volumeId}` }], async () => {
        const record = await volumes.read(volumeId);
        if (record === undefined) return unpublishDamaged(context, volumeId, nodeId);
        await context.refuseUnknownStaging(volumeId);
        const going = record.attachments.filter((one) => nodeId === "" || one.nodeId === nodeId);
        if (going.length === 0) return;
        await checkUnstaged(context, volumeId, going);
        try {
          const left = record.attachments.filter((one) => !going.includes(one));
          await volumes.put({ ...record, attachments: left }, LETTING_GO);
        } catch (error) {
          throw toAnswer(error, `detach volume ${volumeId}`);
        }
        log.info("volume detached", { volume: volumeId, nodes: going.map((one) => one.nodeId) });
      });
    },
  };
}

/** Where it is attached is lost with its record; where it is staged is not, and there it is not let go. */
async function unpublishDamaged(context: Context, volumeId: string, nodeId: string): Promise<void> {
  await context.refuseUnknownStaging(volumeId);
  const staged = await context.stagedAnywhere(volumeId);
  const busy = staged.find((record) => nodeId === "" || record.nodeId === nodeId);
  if (busy !== undefined) throw stillStaged(volumeId, busy.nodeId);
}

/** One single-node attachment, old or new, excludes every other node. */
function checkOthers({ id, attachments }: VolumeRecord, wanted: Attachment): void {
  const other = attachments.find(({ nodeId }) => nodeId !== wanted.nodeId);
  if (other === undefined) return;
  if ([other, wanted].some(({ capability }) => SINGLE_NODE_MODES.has(capability.mode))) {
    throw failedPrecondition(
      `volume ${id} is attached to node ${quoted(other.nodeId)} and may be on one node only`,
    );
  }
}

async function checkUnstaged(
  context: Context,
  volumeId: string,
  going: readonly Attachment[],
): Promise<void> {
  const staged = await context.stagedAnywhere(volumeId);
  const busy = staged.find(({ nodeId }) => going.some((attachment) => attachment.nodeId === nodeId));
  if (busy !== undefined) throw stillStaged(volumeId, busy.nodeId);
}

const stillStaged = (volumeId: string, nodeId: string) =>
  failedPrecondition(`volume ${volumeId} is still staged on node ${quoted(nodeId)}; unstage it first`);
