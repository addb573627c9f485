import type { Pod } from "../../kube/api/pod.ts";
import { CSI_PLUGIN, type VolumeName } from "../../volumes/names.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import type { Context } from "../context.ts";
import { uidOf } from "../desired.ts";

/** What a kubelet asks its volume manager. All from memory, at once. */
export interface VolumeQueries {
  /** By outer name: what is wanted and mounted. */
  getMountedVolumesForPod(podUid: string): ReadonlyMap<string, MountedVolume>;
  hasPossiblyMountedVolumesForPod(podUid: string): boolean;
  getExtraSupplementalGroupsForPod(pod: Pod): readonly number[];
  /** Sorted. */
  getVolumesInUse(): readonly string[];
  statesHaveBeenSynced(): boolean;
  volumeIsAttached(volume: string): boolean;
  /** Whether a volume of this CSI driver is wanted here, or is or may be here. */
  isDriverInUse(driver: string): boolean;
}

export interface MountedVolume {
  readonly volume: VolumeName;
  /** Inner name: of the PersistentVolume, or of the volume in the pod. */
  readonly specName: string;
  readonly spec: VolumeSpec;
  readonly mode: "Filesystem" | "Block";
  /** Directory, or link to the device. */
  readonly path: string;
  readonly readOnly: boolean;
  /** Whether the container runtime has to relabel its files; false where it is mounted with a context. */
  readonly selinuxRelabel: boolean;
}

const GID_ANNOTATION = "pv.beta.kubernetes.io/gid";

export function createQueries(
  { world }: Context,
  { synced, intended }: { readonly synced: () => boolean; readonly intended: () => ReadonlySet<string> },
): VolumeQueries {
  return {
    getMountedVolumesForPod(podUid) {
      const mounted = new Map<string, MountedVolume>();
      for (const { name, wants, held } of world.volumesOf(podUid)) {
        const want = wants.get(podUid);
        const mount = held?.mounts.get(podUid);
        if (!want || !held || mount?.state !== "mounted") continue;
        const { specName, spec, path, selinuxRelabel } = mount;
        const readOnly = spec.kind === "persistent" && spec.readOnly;
        for (const outer of want.outerNames)
          mounted.set(outer, {
            volume: name,
            specName,
            spec,
            mode: held.mode,
            path,
            readOnly,
            selinuxRelabel,
          });
      }
      return mounted;
    },
    hasPossiblyMountedVolumesForPod: (podUid) =>
      [...world.volumesOf(podUid)].some(({ held }) => held?.mounts.has(podUid)),
    getExtraSupplementalGroupsForPod(pod) {
      const uid = uidOf(pod);
      const own = new Set(pod.spec?.securityContext?.supplementalGroups ?? []);
      const extra = new Set<number>();
      for (const { held } of world.volumesOf(uid)) {
        const mount = held?.mounts.get(uid);
        const gid = mount?.state === "mounted" ? gidOf(mount.spec) : undefined;
        if (gid !== undefined && !own.has(gid)) extra.add(gid);
      }
      return [...extra].sort((a, b) => a - b);
    },
    getVolumesInUse: () => [...intended()].sort(),
    statesHaveBeenSynced: synced,
    isDriverInUse: (driver) =>
      [...world.volumes.keys()].some((name) => name.startsWith(`${CSI_PLUGIN}/${driver}^`)),
    volumeIsAttached: (volume) => world.volumes.get(volume as VolumeName)?.held !== undefined,
  };
}

function gidOf(spec: VolumeSpec): number | undefined {
  const text = spec.kind === "persistent" ? spec.volume.metadata.annotations?.[GID_ANNOTATION] : undefined;
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}
