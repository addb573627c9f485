import { tableOf, type Context } from "./context.ts";
import { failedPrecondition } from "./errors.ts";
import { HostError, type Content, type FsType, type LoopDevice } from "./host.ts";
import type { FilesystemRecord, VolumeRecord } from "./records.ts";
import type { Capability } from "./validate.ts";

/**
 * What is on an image, and what may be done to it: made, repaired, grown, or left alone.
 *
 * mkfs is run on two occasions only. Either this driver has read every byte of the image without an error, found all of
 * them zero, and has never recorded a filesystem for the volume: "blank" from blkid alone says nothing, since it answers the
 * same for a device that it could not read. Or an mkfs that was begun under that proof is not known to have ended: its
 * intent is in the volume's record, for the very file that was read, and nothing of ours mounts a volume before the record
 * says `formatted`. Then mkfs runs again over what the first one left. It is not zero-filled before: mkfs does not need
 * that, and a driver that cannot blank an image cannot blank the wrong one.
 */
export async function prepareFilesystem(
  context: Context,
  { volume, device, capability }: Preparation,
): Promise<Prepared> {
  const { host, paths } = context;
  const wanted = wantedType(context, volume, capability);
  const isMounted = (await host.mounts.list()).some(
    ({ deviceNumber }) => deviceNumber === device.deviceNumber,
  );
  const image = paths.volumeImage(volume.id);
  const content = await host.filesystems.probe(device.path);
  const view = { content, wanted, isMounted, image: (await host.files.stat(image))?.identity };
  const plan = planFilesystem(volume.filesystem, view);
  if (plan.kind === "refuse") throw failedPrecondition(`volume ${volume.id}: ${plan.why}`);
  if (plan.kind === "format") {
    if (plan.proof === "blank") await proveBlank(context, volume.id, device);
    await format(context, { volume, device, type: wanted.type, image: plan.image });
    return { type: wanted.type, isRecorded: true };
  }
  if (!isMounted && plan.type === "ext4") {
    await host.filesystems.check(device.path, plan.type);
    if (await isSmaller(context, device, plan.type)) await host.filesystems.grow(device.path, plan.type);
  }
  return { type: plan.type, isRecorded: volume.filesystem?.phase === "formatted" };
}

export interface Prepared {
  readonly type: FsType;
  /** The volume's record has it. One that was only found is recorded once the kernel has mounted it: tools may err. */
  readonly isRecorded: boolean;
}

interface Preparation {
  readonly volume: VolumeRecord;
  readonly device: LoopDevice;
  readonly capability: Capability;
}

interface WantedType {
  readonly type: FsType;
  /** Somebody named it; otherwise whatever of ours is found will do. */
  readonly named: boolean;
}

function wantedType({ settings }: Context, volume: VolumeRecord, capability: Capability): WantedType {
  const name = capability.fsType === "" ? volume.fsType : capability.fsType;
  return { type: (name === "" ? settings.defaultFsType : name) as FsType, named: name !== "" };
}

export interface FilesystemView {
  readonly content: Content;
  readonly wanted: WantedType;
  /** The device is mounted somewhere. */
  readonly isMounted: boolean;
  /** The identity of the image file; undefined where there is none. */
  readonly image: string | undefined;
}

export type FilesystemPlan =
  | { readonly kind: "use"; readonly type: FsType }
  /** `blank`: only once the whole image was read and is zero. `intent`: an earlier mkfs did not end. */
  | { readonly kind: "format"; readonly proof: "blank" | "intent"; readonly image: string }
  | { readonly kind: "refuse"; readonly why: string };

const refuse = (why: string): FilesystemPlan => ({ kind: "refuse", why: `${why}; it is left as it is` });

/** Pure: what the record and the device say, and what follows. Whatever they disagree about is left alone. */
export function planFilesystem(known: FilesystemRecord | undefined, view: FilesystemView): FilesystemPlan {
  const { content, isMounted, image } = view;
  if (image === undefined) return refuse("its image file is missing");
  if (known?.phase === "formatted") {
    if (content.kind === "filesystem" && content.type === known.type) return use(content.type, view);
    const before = `it was formatted as ${known.type} at ${known.since}`;
    return refuse(`${before}, and now its device ${describe(content)}: it is not formatted again`);
  }
  if (content.kind === "filesystem" && (known === undefined || !content.neverMounted))
    return use(content.type, view);
  if (isMounted) return refuse(`its device ${describe(content)}, and yet it is mounted`);
  if (known === undefined) {
    return content.kind === "blank"
      ? { kind: "format", proof: "blank", image }
      : refuse(`it ${describe(content)}`);
  }
  if (known.image === image) return { kind: "format", proof: "intent", image };
  return refuse(`an mkfs.${known.type} of ${known.since} did not end, and the image is another file since`);
}

function use(found: string, { wanted: { type, named } }: FilesystemView): FilesystemPlan {
  if ((found !== "ext4" && found !== "xfs") || (named && found !== type))
    return refuse(`it holds a ${found} filesystem, not ${type}`);
  return { kind: "use", type: found };
}

function describe(content: Content): string {
  if (content.kind === "blank") return "reads blank";
  return `holds ${content.kind === "other" ? content.what : `a ${content.type} filesystem`}`;
}

/** By reading, not by a tool's word. What cannot be read is an error here, and an error never leads to mkfs. */
async function proveBlank({ host, paths }: Context, id: string, device: LoopDevice): Promise<void> {
  // Of what somebody wrote to the device, the image may have nothing yet.
  await host.loops.flush(device.path);
  const image = paths.volumeImage(id);
  const at = await host.images.firstNonZero(image);
  if (at === undefined) {
    if ((await host.files.stat(image))?.identity === device.backing) return;
    throw failedPrecondition(
      `volume ${id}: its image was replaced under ${device.path}; it is left as it is`,
    );
  }
  throw failedPrecondition(
    `volume ${id}: its image has data at byte ${at}, of no kind that blkid knows; it is left as it is`,
  );
}

/** Intent, mkfs, a look at what it made, result. Cut off or failed anywhere, the next stage goes on from the intent. */
async function format(
  context: Context,
  { volume, device, type, image }: Omit<Preparation, "capability"> & { type: FsType; image: string },
): Promise<void> {
  const { filesystems } = context.host;
  const intent: FilesystemRecord = { phase: "formatting", type, since: now(context), image };
  await tableOf(context, volume.id).put({ ...volume, filesystem: intent });
  await filesystems.format(device.path, type);
  const made = await filesystems.probe(device.path);
  if (made.kind !== "filesystem" || made.type !== type) {
    const found = describe(made);
    throw new HostError("Failed", `mkfs.${type} reported success, but ${device.path} ${found}`);
  }
  await noteFormatted(context, volume, type);
}

/** From here on it is never formatted again, whatever its device says. */
export async function noteFormatted(context: Context, volume: VolumeRecord, type: FsType): Promise<void> {
  const filesystem: FilesystemRecord = { phase: "formatted", type, since: now(context) };
  await tableOf(context, volume.id).put({ ...volume, filesystem });
}

const now = ({ clock }: Context) => clock.wall().toISOString();

export async function isSmaller({ host }: Context, device: LoopDevice, type: FsType): Promise<boolean> {
  return (await host.filesystems.sizeBytes(device.path, type)) < (await host.loops.sizeBytes(device.path));
}

/** What a copy of a volume inherits. Half a filesystem is nothing to copy. */
export function copiedFilesystem({ id, filesystem }: Pick<VolumeRecord, "id" | "filesystem">): {
  readonly filesystem?: FilesystemRecord;
} {
  if (filesystem?.phase === "formatting")
    throw failedPrecondition(`an mkfs of volume ${id} did not end; stage it again before it is copied`);
  return filesystem === undefined ? {} : { filesystem };
}
