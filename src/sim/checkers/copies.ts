import type { VolumeSnapshotContent } from "../../companions/kinds.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { World } from "../world.ts";

/**
 * A volume that is made for a claim with a source is a copy of that source: of a snapshot by that name, or of a disk that the
 * claim by that name has had. What is in it is looked at when a container first opens it. While it is read from one end to the
 * other no workload can write to its source: a copy of a disk that is written meanwhile may be of a state that never was.
 */
export function watchCopies(world: World): void {
  /** Handles by `VolumeSnapshot name` and `PersistentVolumeClaim name`. */
  const handles = new Map<string, Set<string>>();

  function had(source: string, handle: string): void {
    handles.set(source, (handles.get(source) ?? new Set()).add(handle));
  }

  function lookAt({ metadata, spec }: PersistentVolume, isNew: boolean): void {
    const { namespace = "", name = "", uid } = spec?.claimRef ?? {};
    const handle = spec?.csi?.volumeHandle ?? "";
    had(`PersistentVolumeClaim ${name}`, handle);
    if (!isNew) return;
    const claim = world.objects.get("persistentvolumeclaims", name, namespace);
    const source = claim?.metadata.uid === uid ? claim?.spec?.dataSource : undefined;
    // Others are made by hand, for whatever disk somebody chose.
    const isByHand = metadata.name !== `pvc-${uid}` || world.san.volumes.get(handle)?.byOperator === true;
    if (source === undefined || isByHand) return;
    const from = world.data.copies.sourceOf(handle);
    if (from === undefined || handles.get(`${source.kind} ${source.name}`)?.has(from) !== true)
      world.violate(
        `copies: ${handle} was made for claim ${name} of ${source.kind} ${source.name} and is a copy of ${from ?? "nothing"}`,
      );
  }

  world.data.copies.onBegin((from, { atOnce }) => {
    if (atOnce) return;
    for (const { name, containers } of world.nodes.values())
      if (containers.writes(from))
        world.violate(
          `copies: ${from} is read from one end to the other while a workload on ${name} can write to it`,
        );
  });
  world.server.witness({
    committed({ type, object: { key, text } }) {
      if (key.resource === "volumesnapshotcontents.snapshot.storage.k8s.io") {
        const { spec, status } = JSON.parse(text) as VolumeSnapshotContent;
        if (status?.snapshotHandle !== undefined)
          had(`VolumeSnapshot ${spec.volumeSnapshotRef.name}`, status.snapshotHandle);
      } else if (key.resource === "persistentvolumes")
        lookAt(JSON.parse(text) as PersistentVolume, type === "created");
    },
    answered: () => undefined,
  });
}
