import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CreateVolumeGroupSnapshotRequest,
  GroupController,
  VolumeGroupSnapshotSchema,
} from "../csi/gen/csi_pb.ts";
import { GroupControllerServiceCapability_RPC_Type as Rpc } from "../csi/gen/csi_pb.ts";
import type { Handlers } from "../csi/methods.ts";
import { refuseDamaged, type Context } from "./context.ts";
import { alreadyExists, invalid, notFound, quoted, toAnswer } from "./errors.ts";
import { ID, LETTING_GO, newId, type GroupRecord } from "./records.ts";
import {
  checkSnapshotParameters,
  cutSnapshots,
  findSource,
  removeSnapshot,
  toSnapshot,
} from "./snapshots.ts";
import { checkName, checkPresent } from "./validate.ts";

/** Snapshots of several volumes at one moment: all frozen, all copied, all thawed; whole or not at all. */

/** One freeze covers all of them, so a group has to fit into `freezeMsMax`. */
const GROUP_VOLUMES_MAX = 32;

export function createGroups(context: Context): Handlers<typeof GroupController> {
  return {
    groupControllerGetCapabilities: async () => ({
      capabilities: [{ type: { case: "rpc", value: { type: Rpc.CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT } } }],
    }),
    createVolumeGroupSnapshot: async (request) => ({
      groupSnapshot: toGroup(context, await createGroup(context, request)),
    }),
    deleteVolumeGroupSnapshot: async ({ groupSnapshotId, snapshotIds }) => {
      await deleteGroup(context, groupSnapshotId, snapshotIds);
      return {};
    },
    getVolumeGroupSnapshot: async ({ groupSnapshotId: id, snapshotIds }) => {
      checkPresent(id, "group_snapshot_id");
      const group = context.groups.get(id);
      if (group?.phase !== "ready") throw notFound(`group snapshot ${quoted(id)} does not exist`);
      checkMembers(group, snapshotIds);
      return { groupSnapshot: toGroup(context, group) };
    },
  };
}

async function createGroup(
  context: Context,
  request: CreateVolumeGroupSnapshotRequest,
): Promise<GroupRecord> {
  const { name, sourceVolumeIds } = request;
  checkName(name);
  if (sourceVolumeIds.length === 0) throw invalid("source_volume_ids is missing");
  if (sourceVolumeIds.length > GROUP_VOLUMES_MAX)
    throw invalid(`a group takes at most ${GROUP_VOLUMES_MAX} volumes`);
  if (new Set(sourceVolumeIds).size < sourceVolumeIds.length)
    throw invalid("source_volume_ids names a volume twice");
  checkSnapshotParameters(request.parameters);
  const keys = [
    { key: `name/group/${name}` },
    ...sourceVolumeIds.map((id) => ({ key: `volume/${id}`, shared: true })),
  ];
  return context.locks.hold(keys, async () => {
    const existing = context.groups.all().find((group) => group.name === name);
    if (existing === undefined) return makeGroup(context, name, sourceVolumeIds);
    if ([...existing.sourceVolumeIds].sort().join() === [...sourceVolumeIds].sort().join()) return existing;
    throw alreadyExists(`group snapshot ${quoted(name)} exists with other source volumes`);
  });
}

async function makeGroup(
  context: Context,
  name: string,
  sourceVolumeIds: readonly string[],
): Promise<GroupRecord> {
  const { groups, random, clock } = context;
  const sources = await Promise.all(sourceVolumeIds.map((id) => findSource(context, id)));
  const draft: GroupRecord = {
    id: newId("group", random),
    name,
    phase: "creating",
    sourceVolumeIds,
    snapshotIds: [],
    createdAt: clock.wall().toISOString(),
  };
  try {
    await groups.put(draft);
    const cut = await cutSnapshots(
      context,
      sources.map((source) => ({ source, name: `${name}/${source.id}`, groupId: draft.id })),
    );
    const ready: GroupRecord = {
      ...draft,
      phase: "ready",
      snapshotIds: cut.map(({ id }) => id),
      createdAt: cut[0]?.createdAt ?? draft.createdAt,
    };
    await groups.put(ready);
    return ready;
  } catch (error) {
    await removeGroup(context, draft.id);
    throw toAnswer(error, `group snapshot ${quoted(name)}`);
  }
}

async function deleteGroup(context: Context, id: string, snapshotIds: readonly string[]): Promise<void> {
  checkPresent(id, "group_snapshot_id");
  if (!ID.test(id)) return;
  const members = context.groups.get(id)?.snapshotIds ?? [];
  const keys = [{ key: `group/${id}` }, ...members.map((member) => ({ key: `snapshot/${member}` }))];
  await context.locks.hold(keys, async () => {
    const group = context.groups.get(id);
    if (group === undefined) return refuseDamaged(context.groups, "group snapshot", id);
    checkMembers(group, snapshotIds);
    try {
      await context.groups.put({ ...group, phase: "deleting" }, LETTING_GO);
      await removeGroup(context, id);
    } catch (error) {
      throw toAnswer(error, `delete group snapshot ${id}`);
    }
  });
}

/** Members go first: a group without its record would leave snapshots that nobody may delete. */
export async function removeGroup(context: Context, id: string): Promise<void> {
  const members = context.snapshots.all().filter(({ groupId }) => groupId === id);
  for (const member of members) await removeSnapshot(context, member.id);
  await context.groups.remove(id);
}

/** The ids are a check on the caller's books; none given is no claim. */
function checkMembers({ id, snapshotIds }: GroupRecord, claimed: readonly string[]): void {
  if (claimed.length === 0) return;
  if ([...claimed].sort().join() !== [...snapshotIds].sort().join()) {
    throw invalid(`snapshot_ids are not the members of group ${id}`);
  }
}

function toGroup(context: Context, group: GroupRecord): MessageInitShape<typeof VolumeGroupSnapshotSchema> {
  const members = group.snapshotIds.map((id) => context.snapshots.get(id)).filter((one) => one !== undefined);
  return {
    groupSnapshotId: group.id,
    snapshots: members.map(toSnapshot),
    creationTime: timestampFromDate(new Date(group.createdAt)),
    readyToUse: members.every(({ phase }) => phase === "ready"),
  };
}
