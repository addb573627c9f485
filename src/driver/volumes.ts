import type { CreateVolumeRequest, Volume } from "../csi/gen/csi_pb.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { VolumeSchema } from "../csi/gen/csi_pb.ts";
import { CsiError } from "../csi/errors.ts";
import { refuseDamaged, tableOf, type Context } from "./context.ts";
import { cutImages } from "./cut.ts";
import { detachVerified, leftDeviceOf } from "./devices.ts";
import {
  alreadyExists,
  failedPrecondition,
  invalid,
  notFound,
  outOfRange,
  quoted,
  toAnswer,
} from "./errors.ts";
import { copiedFilesystem } from "./filesystem.ts";
import type { FsType } from "./host.ts";
import { checkMutable } from "./modify.ts";
import { BLOCK_BYTES, MIN_VOLUME_BYTES, topologyKey } from "./options.ts";
import { ID, LETTING_GO, newId, type FilesystemRecord, type VolumeRecord } from "./records.ts";
import { chooseSize } from "./size.ts";
import { checkMap, checkName, checkPresent, combine, inRange, toRange, type Range } from "./validate.ts";

/** CreateVolume and DeleteVolume. */

interface Wish {
  readonly name: string;
  readonly range: Range;
  readonly accessType: "mount" | "block";
  readonly fsType: string;
  readonly thick: boolean;
  readonly kind: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly mutableParameters: Readonly<Record<string, string>>;
  readonly source: VolumeRecord["source"];
}

export async function createVolume(context: Context, request: CreateVolumeRequest): Promise<VolumeRecord> {
  const wish = toWish(context, request);
  checkTopology(context, request);
  const source = wish.source;
  const keys = [
    { key: `name/volume/${wish.name}` },
    ...(source === undefined ? [] : [{ key: `${source.kind}/${source.id}`, shared: true }]),
  ];
  return context.locks.hold(keys, async () => {
    const existing = context.volumes.all().find(({ name }) => name === wish.name);
    if (existing?.phase === "ready") return repeated(existing, wish);
    if (existing !== undefined) await finishRemoval(context, existing.id);
    return make(context, wish);
  });
}

/** A creation or deletion that failed could not be undone or ended then. No OK was ever given for it: there is no image behind it. */
async function finishRemoval(context: Context, id: string): Promise<void> {
  await context.locks.hold([{ key: `volume/${id}` }], async () => {
    try {
      if (context.volumes.get(id) !== undefined) await removeVolume(context, id);
    } catch (error) {
      throw toAnswer(error, `remove what an earlier try left of volume ${id}`);
    }
  });
}

function toWish(context: Context, request: CreateVolumeRequest): Wish {
  checkName(request.name);
  const { accessType, fsType } = combine(request.volumeCapabilities);
  checkMap(request.parameters, "parameters");
  const { kind, provisioning, fsType: fsParameter } = readParameters(request.parameters);
  checkMutable(context.settings, request.mutableParameters);
  const wish: Wish = {
    name: request.name,
    range: toRange(request.capacityRange),
    accessType,
    fsType: accessType === "block" ? "" : fsType === "" ? fsParameter : fsType,
    thick: provisioning === "thick",
    kind,
    parameters: withoutReserved(request.parameters),
    mutableParameters: { ...request.mutableParameters },
    source: toSource(request),
  };
  checkOffered(context, wish.fsType);
  return wish;
}

const PARAMETERS = new Set(["kind", "provisioning", "fsType"]);
const RESERVED = "csi.storage.k8s.io/";

function readParameters(parameters: Readonly<Record<string, string>>) {
  for (const key of Object.keys(parameters)) {
    if (!PARAMETERS.has(key) && !key.startsWith(RESERVED)) {
      throw invalid(`parameter ${quoted(key)} is unknown; this driver takes ${[...PARAMETERS].join(", ")}`);
    }
  }
  const { kind = "", provisioning = "thin", fsType = "" } = parameters;
  if (!["thin", "thick"].includes(provisioning))
    throw invalid("parameter provisioning must be thin or thick");
  if (!["", "ext4", "xfs"].includes(fsType)) throw invalid("parameter fsType must be ext4 or xfs");
  return { kind, provisioning, fsType };
}

/** Metadata that the provisioner adds may differ between retries of one request. */
function withoutReserved(parameters: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(parameters).filter(([key]) => !key.startsWith(RESERVED)));
}

function toSource({ volumeContentSource }: CreateVolumeRequest): Wish["source"] {
  if (volumeContentSource === undefined) return undefined;
  const { type } = volumeContentSource;
  if (type.case === "snapshot") {
    checkPresent(type.value.snapshotId, "volume_content_source.snapshot.snapshot_id");
    return { kind: "snapshot", id: type.value.snapshotId };
  }
  if (type.case !== "volume") throw invalid("volume_content_source is of a kind this driver does not know");
  checkPresent(type.value.volumeId, "volume_content_source.volume.volume_id");
  return { kind: "volume", id: type.value.volumeId };
}

function checkOffered({ host, settings }: Context, fsType: string): void {
  const type = (fsType === "" ? settings.defaultFsType : fsType) as FsType;
  if (!host.filesystems.offered().includes(type)) {
    throw invalid(`${type} is not offered here: mkfs.${type} is not installed`);
  }
}

function checkTopology({ settings }: Context, request: CreateVolumeRequest): void {
  const requisite = request.accessibilityRequirements?.requisite ?? [];
  if (!settings.topology || requisite.length === 0) return;
  const key = topologyKey(settings).toLowerCase();
  const nodes = new Set([settings.nodeId, ...settings.nodes]);
  const reachable = requisite.some(({ segments }) =>
    Object.entries(segments).every(([name, value]) => name.toLowerCase() === key && nodes.has(value)),
  );
  if (!reachable) {
    throw new CsiError(
      "RESOURCE_EXHAUSTED",
      "none of the requisite topologies is a node of this storage pool",
    );
  }
}

function repeated(existing: VolumeRecord, wish: Wish): VolumeRecord {
  const differs = !inRange(existing.sizeBytes, wish.range)
    ? "size"
    : existing.accessType !== wish.accessType
      ? "access type"
      : existing.fsType !== wish.fsType
        ? "filesystem type"
        : !sameMap(existing.parameters, wish.parameters)
          ? "parameters"
          : !sameMap(existing.mutableParameters, wish.mutableParameters)
            ? "mutable parameters"
            : existing.source?.id !== wish.source?.id
              ? "source"
              : undefined;
  if (differs === undefined) return existing;
  throw alreadyExists(`volume ${quoted(wish.name)} exists with another ${differs}`);
}

function sameMap(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const entries = Object.entries(a);
  return entries.length === Object.keys(b).length && entries.every(([key, value]) => b[key] === value);
}

export interface Origin {
  readonly sizeBytes: bigint;
  readonly filesystem?: FilesystemRecord;
  copyTo(path: string): Promise<unknown>;
}

async function make(context: Context, wish: Wish): Promise<VolumeRecord> {
  const { settings, random, clock, pools } = context;
  const origin = await findOrigin(context, wish);
  const type = (wish.fsType === "" ? settings.defaultFsType : wish.fsType) as FsType;
  const floor = wish.accessType === "block" ? BLOCK_BYTES : MIN_VOLUME_BYTES[type];
  const noRange = wish.range.requiredBytes === 0n && wish.range.limitBytes === 0n;
  const range =
    noRange && origin !== undefined ? { requiredBytes: origin.sizeBytes, limitBytes: 0n } : wish.range;
  const sizeBytes = chooseSize(range, { minBytes: floor, maxBytes: settings.maxVolumeBytes });
  if (origin !== undefined && sizeBytes < origin.sizeBytes) {
    throw outOfRange(`the source has ${origin.sizeBytes} bytes, the volume would have ${sizeBytes}`);
  }
  const reservation = pools.reserve(wish.kind, sizeBytes);
  try {
    const { range: _range, source, ...rest } = wish;
    const record: VolumeRecord = {
      ...rest,
      ...(source === undefined ? {} : { source }),
      id: newId("vol", random),
      kind: reservation.kind,
      phase: "creating",
      sizeBytes,
      createdAt: clock.wall().toISOString(),
      attachments: [],
      ...(origin?.filesystem === undefined ? {} : { filesystem: origin.filesystem }),
    };
    return await realise(context, record, origin);
  } finally {
    reservation.release();
  }
}

/** From the disk: a node writes into the record of a volume what it has made of its image. */
async function findOrigin(context: Context, { source, accessType }: Wish): Promise<Origin | undefined> {
  if (source === undefined) return undefined;
  const found =
    source.kind === "snapshot" ? context.snapshots.get(source.id) : await context.volumes.read(source.id);
  if (found?.phase !== "ready") throw notFound(`source ${source.kind} ${quoted(source.id)} does not exist`);
  if (found.accessType !== accessType)
    throw invalid(`the source is a ${found.accessType} volume, asked is ${accessType}`);
  const common = { sizeBytes: found.sizeBytes, ...copiedFilesystem(found) };
  if ("attachments" in found) {
    return { ...common, copyTo: (to) => cutImages(context, [{ volume: found, to }]) };
  }
  return { ...common, copyTo: (to) => context.host.images.copy(context.paths.snapshotImage(found.id), to) };
}

/** Intent, then an image in tmp, then its rename into place, then the result: cut off anywhere, recovery can tell. */
export async function realise(
  context: Context,
  record: VolumeRecord,
  origin?: Origin,
): Promise<VolumeRecord> {
  const { host, paths, log } = context;
  const { id, sizeBytes, thick } = record;
  const volumes = tableOf(context, id);
  const draft = `${paths.tmp}/${id}.raw`;
  // An ephemeral volume has the id that its pod gives it, so there may be an image whose record was lost.
  await refuseDamaged(volumes, "volume", id);
  try {
    await host.files.makeDirectory(paths.volume(id), 0o700);
    await volumes.put(record);
    if (origin === undefined) await host.images.create(draft, sizeBytes, { thick });
    else {
      await origin.copyTo(draft);
      await host.images.grow(draft, sizeBytes, { thick });
    }
    await host.files.rename(draft, paths.volumeImage(id));
    const ready: VolumeRecord = { ...record, phase: "ready" };
    await volumes.put(ready);
    log.info("volume created", { volume: id, name: record.name, sizeBytes: String(sizeBytes) });
    return ready;
  } catch (error) {
    await host.files.removeFile(draft);
    await removeVolume(context, id);
    throw toAnswer(error, `create volume ${quoted(record.name)}`);
  }
}

export async function deleteVolume(context: Context, id: string): Promise<void> {
  checkPresent(id, "volume_id");
  if (!ID.test(id)) return;
  await context.locks.hold([{ key: `volume/${id}` }], async () => {
    const record = await context.volumes.read(id);
    if (record === undefined) return forgetVolume(context, id);
    await context.refuseUnknownStaging(id);
    const nodes = [
      ...record.attachments.map(({ nodeId }) => nodeId),
      ...(await context.stagedAnywhere(id)).map(({ nodeId }) => nodeId),
    ];
    if (nodes.length > 0) {
      throw failedPrecondition(`volume ${id} is in use on node ${nodes[0] ?? ""}; unpublish it there first`);
    }
    try {
      await context.volumes.put({ ...record, phase: "deleting" }, LETTING_GO);
      await removeVolume(context, id);
    } catch (error) {
      throw toAnswer(error, `delete volume ${id}`);
    }
    context.log.info("volume deleted", { volume: id, name: record.name });
  });
}

/** Unknown, or removed behind our back: only empty directories may be left. */
async function forgetVolume(context: Context, id: string): Promise<void> {
  await refuseDamaged(context.volumes, "volume", id);
  if (context.volumes.get(id) === undefined) return;
  // Asked twice, because what follows forgets it.
  if ((await context.volumes.read(id)) !== undefined)
    throw new CsiError("ABORTED", `the record of volume ${id} was not there a moment ago; try again`);
  await context.volumes.remove(id);
  await context.host.files.removeDirectory(context.paths.volume(id));
}

/** What is left of a volume with a record, in the order that lets a second try go on where the first was cut off. */
export async function removeVolume(context: Context, id: string): Promise<void> {
  const { host, paths } = context;
  const image = paths.volumeImage(id);
  const device = await leftDeviceOf(context, image);
  if (device !== undefined) await detachVerified(context, device);
  await host.files.removeFile(image);
  await tableOf(context, id).remove(id);
  // The staging directory of an ephemeral one.
  await host.files.removeDirectory(`${paths.volume(id)}/mount`);
  await host.files.removeDirectory(paths.volume(id));
}

export function toVolume(context: Context, record: VolumeRecord): MessageInitShape<typeof VolumeSchema> {
  const { settings } = context;
  const nodes = [settings.nodeId, ...settings.nodes];
  return {
    volumeId: record.id,
    capacityBytes: record.sizeBytes,
    volumeContext: {},
    ...(record.source === undefined ? {} : { contentSource: toContentSource(record.source) }),
    accessibleTopology: settings.topology
      ? nodes.map((node) => ({ segments: { [topologyKey(settings)]: node } }))
      : [],
  };
}

function toContentSource({
  kind,
  id,
}: NonNullable<VolumeRecord["source"]>): Volume["contentSource"] & object {
  const type =
    kind === "snapshot"
      ? { case: "snapshot" as const, value: { snapshotId: id } }
      : { case: "volume" as const, value: { volumeId: id } };
  return { type } as Volume["contentSource"] & object;
}
