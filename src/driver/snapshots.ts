import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CreateSnapshotRequest, SnapshotSchema } from "../csi/gen/csi_pb.ts";
import { refuseDamaged, type Context } from "./context.ts";
import { cutImages } from "./cut.ts";
import { alreadyExists, invalid, notFound, quoted, toAnswer } from "./errors.ts";
import { copiedFilesystem } from "./filesystem.ts";
import { ID, LETTING_GO, newId, type SnapshotRecord, type VolumeRecord } from "./records.ts";
import { checkMap, checkName, checkPresent } from "./validate.ts";

/** Snapshots are whole images of their own: the source may be deleted, and nothing of them depends on it. */

export async function createSnapshot(
  context: Context,
  request: CreateSnapshotRequest,
): Promise<SnapshotRecord> {
  const { name, sourceVolumeId } = request;
  checkPresent(sourceVolumeId, "source_volume_id");
  checkName(name);
  checkSnapshotParameters(request.parameters);
  const keys = [{ key: `name/snapshot/${name}` }, { key: `volume/${sourceVolumeId}`, shared: true }];
  return context.locks.hold(keys, async () => {
    const existing = context.snapshots.all().find((one) => one.name === name && one.groupId === undefined);
    if (existing !== undefined && existing.sourceVolumeId !== sourceVolumeId)
      throw alreadyExists(`snapshot ${quoted(name)} exists with another source volume`);
    if (existing?.phase === "ready") return existing;
    if (existing !== undefined) await finishRemoval(context, existing.id);
    const source = await findSource(context, sourceVolumeId);
    const [snapshot] = await cutSnapshots(context, [{ source, name }]);
    return snapshot as SnapshotRecord;
  });
}

/** A cut or a deletion that failed could not be undone or ended then: it will never be ready. */
async function finishRemoval(context: Context, id: string): Promise<void> {
  await context.locks.hold([{ key: `snapshot/${id}` }], async () => {
    try {
      if (context.snapshots.get(id) !== undefined) await removeSnapshot(context, id);
    } catch (error) {
      throw toAnswer(error, `remove what an earlier try left of snapshot ${id}`);
    }
  });
}

/** From the disk: a node writes into the record of a volume what it has made of its image. */
export async function findSource({ volumes }: Context, id: string): Promise<VolumeRecord> {
  const source = await volumes.read(id);
  if (source?.phase !== "ready") throw notFound(`source volume ${quoted(id)} does not exist`);
  return source;
}

/** None is needed; what the snapshotter adds on its own account is let through. */
export function checkSnapshotParameters(parameters: Readonly<Record<string, string>>): void {
  checkMap(parameters, "parameters");
  const unknown = Object.keys(parameters).find((key) => !key.startsWith("csi.storage.k8s.io/"));
  if (unknown !== undefined) throw invalid(`parameter ${quoted(unknown)} is unknown; snapshots take none`);
}

/** All of one moment, or none: on failure everything made here is gone again. */
export async function cutSnapshots(
  context: Context,
  wishes: readonly { readonly source: VolumeRecord; readonly name: string; readonly groupId?: string }[],
): Promise<readonly SnapshotRecord[]> {
  const { paths, host, snapshots, clock, random, pools, log } = context;
  const drafts: SnapshotRecord[] = [];
  const reservations: { release(): void }[] = [];
  try {
    for (const { source, name, groupId } of wishes) {
      reservations.push(pools.reserve(source.kind, source.sizeBytes));
      const draft: SnapshotRecord = {
        id: newId("snap", random),
        name,
        phase: "creating",
        sourceVolumeId: source.id,
        sizeBytes: source.sizeBytes,
        accessType: source.accessType,
        fsType: source.fsType,
        kind: source.kind,
        createdAt: clock.wall().toISOString(),
        ...(groupId === undefined ? {} : { groupId }),
        ...copiedFilesystem(source),
      };
      drafts.push(draft);
      await host.files.makeDirectory(`${paths.snapshots}/${draft.id}`, 0o700);
      await snapshots.put(draft);
    }
    // Their records hold the room from here on.
    for (const reservation of reservations.splice(0)) reservation.release();
    const { cutAt } = await cutImages(
      context,
      wishes.map(({ source }, index) => ({ volume: source, to: draftOf(context, drafts[index]) })),
    );
    const ready = drafts.map((draft) => ({
      ...draft,
      phase: "ready" as const,
      createdAt: cutAt.toISOString(),
    }));
    for (const snapshot of ready) {
      await host.files.rename(draftOf(context, snapshot), paths.snapshotImage(snapshot.id));
      await snapshots.put(snapshot);
    }
    log.info("snapshots cut", { snapshots: ready.map(({ id }) => id) });
    return ready;
  } catch (error) {
    for (const draft of drafts) await removeSnapshot(context, draft.id);
    throw toAnswer(error, `snapshot ${quoted(wishes[0]?.name ?? "")}`);
  } finally {
    for (const reservation of reservations) reservation.release();
  }
}

function draftOf({ paths }: Context, snapshot: SnapshotRecord | undefined): string {
  return `${paths.tmp}/${snapshot?.id ?? ""}.raw`;
}

export async function deleteSnapshot(context: Context, id: string): Promise<void> {
  checkPresent(id, "snapshot_id");
  if (!ID.test(id)) return;
  // A restore holds the snapshot shared: this waits for it, and answers ABORTED when it takes long.
  await context.locks.hold([{ key: `snapshot/${id}` }], async () => {
    const record = context.snapshots.get(id);
    if (record === undefined) return refuseDamaged(context.snapshots, "snapshot", id);
    if (record.groupId !== undefined) {
      throw invalid(`snapshot ${id} belongs to group ${record.groupId}; delete the group`);
    }
    try {
      await context.snapshots.put({ ...record, phase: "deleting" }, LETTING_GO);
      await removeSnapshot(context, id);
    } catch (error) {
      throw toAnswer(error, `delete snapshot ${id}`);
    }
    context.log.info("snapshot deleted", { snapshot: id });
  });
}

export async function removeSnapshot(context: Context, id: string): Promise<void> {
  const { host, paths, snapshots } = context;
  await host.files.removeFile(`${paths.tmp}/${id}.raw`);
  await host.files.removeFile(paths.snapshotImage(id));
  await snapshots.remove(id);
  await host.files.removeDirectory(`${paths.snapshots}/${id}`);
}

export function toSnapshot(record: SnapshotRecord): MessageInitShape<typeof SnapshotSchema> {
  return {
    snapshotId: record.id,
    sourceVolumeId: record.sourceVolumeId,
    sizeBytes: record.sizeBytes,
    creationTime: timestampFromDate(new Date(record.createdAt)),
    readyToUse: record.phase === "ready",
    groupSnapshotId: record.groupId ?? "",
  };
}
