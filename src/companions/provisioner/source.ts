import type { MessageInitShape } from "@bufbuild/protobuf";
import type { VolumeContentSourceSchema } from "../../csi/gen/csi_pb.ts";
import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Client } from "../../kube/client/client.ts";
import { sourceOf } from "../claims.ts";
import type { DriverAbilities } from "../driver.ts";
import { StorageError } from "../errors.ts";
import {
  sourceKind,
  volumeSnapshotContents,
  volumeSnapshots,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from "../kinds.ts";
import { bytesOf } from "../sizes.ts";
import { found } from "../writes.ts";

export type ContentSource = MessageInitShape<typeof VolumeContentSourceSchema>;

interface Wish {
  readonly claim: PersistentVolumeClaim;
  readonly driver: string;
  readonly sizeBytes: bigint;
  /** Only to learn what an earlier request came to: a source that is going was good enough for that one. */
  readonly unwanted: boolean;
}

/** Read from the API server, not from a cache: a copy of the wrong thing is worse than a late one. */
export async function readSource(
  client: Pick<Client, "get">,
  wish: Wish,
  { abilities, signal }: { readonly abilities: DriverAbilities; readonly signal: AbortSignal },
): Promise<ContentSource | undefined> {
  const source = sourceOf(wish.claim);
  if (!source) return undefined;
  const namespace = wish.claim.metadata.namespace ?? "";
  if (source.namespace !== undefined && source.namespace !== "" && source.namespace !== namespace) {
    throw new StorageError(
      "BadSource",
      `the source is in namespace ${source.namespace}, which is not supported`,
    );
  }
  const ref = { name: source.name, namespace };
  if (sourceKind(source) === "snapshot") {
    if (!abilities.snapshots) throw new StorageError("DriverUnfit", "the driver cannot restore snapshots");
    const snapshot = await found(client.get(volumeSnapshots, ref, { signal }));
    const name = snapshot?.status?.boundVolumeSnapshotContentName;
    const content = name ? await found(client.get(volumeSnapshotContents, { name }, { signal })) : undefined;
    return fromSnapshot(wish, { name: source.name, snapshot, content });
  }
  if (!abilities.clones) throw new StorageError("DriverUnfit", "the driver cannot clone volumes");
  const claim = await found(client.get(persistentVolumeClaims, ref, { signal }));
  const name = claim?.spec?.volumeName;
  const volume = name ? await found(client.get(persistentVolumes, { name }, { signal })) : undefined;
  return fromClaim(wish, { name: source.name, claim, volume });
}

const ALLOW_MODE_CHANGE = "snapshot.storage.kubernetes.io/allow-volume-mode-change";

export function fromSnapshot(
  { claim, driver, sizeBytes, unwanted }: Wish,
  {
    name,
    snapshot,
    content,
  }: {
    readonly name: string;
    readonly snapshot: VolumeSnapshot | undefined;
    readonly content: VolumeSnapshotContent | undefined;
  },
): ContentSource {
  const what = `snapshot "${name}"`;
  if (!snapshot) throw missing(what);
  if (snapshot.metadata.deletionTimestamp && !unwanted) throw notReady(`${what} is being deleted`);
  if (snapshot.status?.readyToUse !== true || !content) throw notReady(`${what} is not ready to use`);
  const ref = content.spec.volumeSnapshotRef;
  if (ref.uid !== snapshot.metadata.uid) {
    throw notReady(`${what} is not the one that its content "${content.metadata.name}" is bound to`);
  }
  if (content.spec.driver !== driver) {
    throw new StorageError(
      "BadSource",
      `${what} is of driver ${content.spec.driver}, the class is of ${driver}`,
    );
  }
  const handle = content.status?.snapshotHandle;
  if (!handle) throw notReady(`${what} has no handle yet`);
  const restoreBytes = bytesOf(snapshot.status.restoreSize ?? 0);
  if (restoreBytes > sizeBytes) {
    throw new StorageError(
      "BadSource",
      `${what} needs ${restoreBytes} bytes, the claim asks for ${sizeBytes}`,
    );
  }
  const mode = content.spec.sourceVolumeMode;
  const changes = mode !== undefined && mode !== (claim.spec?.volumeMode ?? "Filesystem");
  if (changes && content.metadata.annotations?.[ALLOW_MODE_CHANGE] !== "true") {
    const how = `annotate its content with ${ALLOW_MODE_CHANGE}: "true" to allow it`;
    throw new StorageError(
      "BadSource",
      `${what} is of a ${mode} volume, the claim is for another mode; ${how}`,
    );
  }
  return { type: { case: "snapshot", value: { snapshotId: handle } } };
}

export function fromClaim(
  wish: Wish,
  {
    name,
    claim,
    volume,
  }: {
    readonly name: string;
    readonly claim: PersistentVolumeClaim | undefined;
    readonly volume: PersistentVolume | undefined;
  },
): ContentSource {
  const what = `source claim "${name}"`;
  if (!claim) throw missing(what);
  if (claim.metadata.deletionTimestamp && !wish.unwanted) throw notReady(`${what} is being deleted`);
  if (claim.status?.phase !== "Bound" || !volume) throw notReady(`${what} is not bound to a volume yet`);
  if (volume.spec?.claimRef?.uid !== claim.metadata.uid)
    throw notReady(`${what} and its volume do not agree`);
  const csi = volume.spec?.csi;
  if (csi?.driver !== wish.driver) {
    throw new StorageError("BadSource", `${what} is not a volume of driver ${wish.driver}`);
  }
  const modes = [volume.spec?.volumeMode ?? "Filesystem", wish.claim.spec?.volumeMode ?? "Filesystem"];
  if (modes[0] !== modes[1]) {
    throw new StorageError("BadSource", `${what} is of mode ${modes[0]}, the claim of ${modes[1]}`);
  }
  const sourceBytes = bytesOf(volume.spec?.capacity?.["storage"]);
  if (sourceBytes > wish.sizeBytes) {
    throw new StorageError(
      "BadSource",
      `${what} has ${sourceBytes} bytes, the claim asks for ${wish.sizeBytes}`,
    );
  }
  return { type: { case: "volume", value: { volumeId: csi.volumeHandle } } };
}

function notReady(message: string): StorageError {
  return new StorageError("SourceNotReady", message);
}

function missing(what: string): StorageError {
  return new StorageError("SourceMissing", `${what} does not exist`);
}
