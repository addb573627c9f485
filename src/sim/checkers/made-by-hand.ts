import type { AttachDetachController } from "../../attach-detach/controller.ts";
import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import { HANDLE_ANNOTATION, isOwnAttachmentName } from "../../volumes/names.ts";
import { isByHand } from "../acts/attachments.ts";
import type { World } from "../world.ts";
import { CALM_MS, createCalm } from "./calm.ts";

const LOOK_MS = 500;

/** One term of a replica. */
type Leader = AttachDetachController;

interface Seen {
  readonly attachment: VolumeAttachment;
  /** Its PersistentVolume is there, so that everybody can tell what it is. */
  readonly isReadable: boolean;
}

/**
 * A VolumeAttachment that somebody made by hand is deleted by him alone. Of one under a name like ours, whose PersistentVolume is
 * gone and whose disk no attacher has recorded, a leader who never saw more cannot tell that it is not ours (decision 9). Who knew
 * better once has to remember it: who has shown it as foreign, and who has led, with nothing in his way for two minutes, while it
 * could be read.
 */
export function watchMadeByHand(world: World): void {
  const clock = world.scheduler.createClock();
  const calm = createCalm(world);
  /** By the uid of the attachment. */
  const knownTo = new Map<string, Set<Leader>>();
  let present = new Map<string, Seen>();
  let leaders: readonly Leader[] = [];

  function look(): void {
    calm.look();
    const now = attachmentsByHand();
    const leading = [...world.controllers].flatMap(([process, current]) => {
      const leader = current();
      return leader === undefined ? [] : [{ process, leader }];
    });
    const last = leaders;
    leaders = leading.map(({ leader }) => leader);
    for (const [name, seen] of present) {
      const { uid = "" } = seen.attachment.metadata;
      if (now.get(name)?.attachment.metadata.uid === uid || world.byHand.letGo.has(uid)) continue;
      const suspects = leaders.length === 0 ? last : leaders;
      const isKnown = suspects.some((leader) => knownTo.get(uid)?.has(leader));
      if (isKnown || !looksLikeOurs(seen))
        world.violate(`by-hand: VolumeAttachment ${name} was deleted, but not by who made it`);
    }
    // Any other name says by itself that it is not ours.
    const disguised = [...now].filter(([name]) => isOwnAttachmentName(name));
    if (disguised.length > 0)
      for (const { process, leader } of leading) {
        const shown = shownBy(leader);
        const hears = last.includes(leader) && calm.forMs(process) >= CALM_MS;
        for (const [name, seen] of disguised)
          if (shown.has(name) || (hears && seen.isReadable && present.get(name)?.isReadable === true))
            learn(seen, leader);
      }
    present = now;
    clock.after(LOOK_MS, look);
  }

  function attachmentsByHand(): Map<string, Seen> {
    const found = new Map<string, Seen>();
    for (const attachment of world.objects.all("volumeattachments.storage.k8s.io")) {
      const { name = "", deletionTimestamp } = attachment.metadata;
      if (!isByHand(attachment.metadata) || deletionTimestamp !== undefined) continue;
      found.set(name, { attachment, isReadable: hasVolume(attachment) });
    }
    return found;
  }

  function hasVolume({ spec }: VolumeAttachment): boolean {
    return world.objects.get("persistentvolumes", spec.source.persistentVolumeName ?? "") !== undefined;
  }

  /** Its PersistentVolume may have gone, or have come back, since the last look. */
  function looksLikeOurs({ attachment, isReadable }: Seen): boolean {
    const { name = "", annotations } = attachment.metadata;
    if (!isOwnAttachmentName(name) || annotations?.[HANDLE_ANNOTATION] !== undefined) return false;
    return !isReadable || !hasVolume(attachment);
  }

  function learn({ attachment: { metadata } }: Seen, leader: Leader): void {
    const { uid = "" } = metadata;
    knownTo.set(uid, (knownTo.get(uid) ?? new Set()).add(leader));
  }
  look();
}

/** As somebody else's, on its page. */
function shownBy(leader: Leader): ReadonlySet<string> {
  return new Set(leader.report({}).volumes.flatMap(({ foreignAttachments = [] }) => foreignAttachments));
}
