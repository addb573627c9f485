import { DEFAULT_ATTACHER_OPTIONS } from "../../attacher/options.ts";
import type { WaitingReason } from "../../attacher/waiting.ts";
import { isOver, never, notLongerThan, requestUnderWay, unless, type Judge } from "./judge.ts";

const callUnderWay = notLongerThan(DEFAULT_ATTACHER_OPTIONS.timeoutMs);

/** Who is named is another attachment of the same disk. */
const sharesTheDisk: Judge = ({ object, attachment: name, handle }, facts) => {
  const attachment = facts.attachment(object.name);
  if (attachment === undefined) return "that VolumeAttachment does not exist";
  if (object.name === name) return "it is the attachment itself that is named";
  return unless([undefined, handle].includes(facts.handleOf(attachment)), "it is for another volume");
};

/** What has to be so where the attacher gives a reason. */
export const ATTACHER_JUDGES: Readonly<Record<WaitingReason, Judge>> = {
  "bad-source": ({ persistentVolume }, facts) =>
    unless(facts.volume(persistentVolume)?.spec?.csi === undefined, "the PersistentVolume has a CSI source"),
  "volume-missing": ({ persistentVolume }, facts) =>
    unless(facts.volume(persistentVolume) === undefined, "the PersistentVolume exists"),
  "volume-deleting": ({ persistentVolume }, facts) =>
    unless(
      facts.volume(persistentVolume)?.metadata.deletionTimestamp !== undefined,
      "the PersistentVolume is not being deleted",
    ),
  // Whether a name was made for another handle only the attacher's own rule tells; one that was never attached is none.
  "volume-replaced": ({ attachment }, facts) =>
    unless(facts.attachment(attachment) !== undefined, "the VolumeAttachment does not exist"),
  "being-detached": (wait, facts) => {
    const other = facts.attachment(wait.object.name);
    if (other !== undefined && other.spec.nodeName !== wait.node) return `it is on ${other.spec.nodeName}`;
    return sharesTheDisk(wait, facts);
  },
  "bad-access-modes": ({ persistentVolume }, facts) =>
    unless(
      (facts.volume(persistentVolume)?.spec?.accessModes?.length ?? 0) !== 1,
      "the PersistentVolume has one access mode",
    ),
  "node-unknown": ({ object, persistentVolume }, facts) => {
    const driver = facts.volume(persistentVolume)?.spec?.csi?.driver ?? "";
    return unless(!facts.isRegistered(driver, object.name), "the CSINode has the driver");
  },
  "secret-unavailable": never("no volume has a secret"),
  "held-by-other-node": (wait, facts) => {
    const other = facts.attachment(wait.object.name);
    if (other?.spec.nodeName === wait.node) return "it is on the same node";
    return sharesTheDisk(wait, facts);
  },
  // How many workers are busy, and with what, is told by the attacher alone: what is in work ends by its deadlines.
  worker: notLongerThan(4 * DEFAULT_ATTACHER_OPTIONS.timeoutMs),
  "api-request": requestUnderWay,
  "driver-attaching": callUnderWay,
  "driver-detaching": callUnderWay,
  // That the last attempt failed nobody else can tell; that the next is due can be told.
  backoff: isOver,
};
