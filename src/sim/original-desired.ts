import type { Caches } from "../attach-detach/caches.ts";
import { MANAGED_ATTACH_ANNOTATION } from "../kube/api/node.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { ObjectKey } from "../kube/object.ts";
import { csiVolumeName, type VolumeName } from "../volumes/names.ts";
import { isPodTerminated, resolveVolume } from "../volumes/resolve.ts";
import { csiSourceOf, type VolumeSpec } from "../volumes/spec.ts";

/** A volume on a node. */
export interface Place {
  readonly volume: VolumeName;
  readonly node: string;
}

export interface DesiredVolume extends Place {
  readonly spec: VolumeSpec;
}

export const placeKey = ({ volume, node }: Place): string => `${volume} ${node}`;

/**
 * The desired state of the original controller: what pods that are not over use, on nodes that leave their attaching to a controller.
 * What a pod was once found to use it keeps until it is over or gone, whatever becomes of its claim. A pod that could not be
 * followed is tried again at every look; the original takes minutes for that, which is slow and not unsafe.
 */
export class OriginalDesired {
  readonly #caches: Caches;
  /** By uid of the pod, then by place. */
  readonly #byPod = new Map<string, Map<string, DesiredVolume>>();

  /** `onDesired` is told of every place that a pod is found to use, also of one that it used before. */
  constructor(caches: Caches, onDesired: (place: Place) => void) {
    this.#caches = caches;
    caches.pods.addHandler(({ kind, object }) => {
      if (kind === "deleted") this.#byPod.delete(object.metadata.uid ?? "");
      else for (const place of this.#look(object)) onDesired(place);
    });
  }

  /** By place; where two pods use one, what the first of them was found to use. */
  places(): ReadonlyMap<string, DesiredVolume> {
    for (const pod of this.#caches.pods.objects()) this.#look(pod);
    const places = new Map<string, DesiredVolume>();
    for (const volumes of this.#byPod.values())
      for (const [key, desired] of volumes)
        // A driver that was switched to one without attach: its volumes are nobody's any more.
        if (!places.has(key) && this.#needsAttach(desired.spec)) places.set(key, desired);
    return places;
  }

  #look(pod: Pod): readonly DesiredVolume[] {
    const { uid = "" } = pod.metadata;
    const node = pod.spec?.nodeName;
    if (isPodTerminated(pod)) this.#byPod.delete(uid);
    if (node === undefined || isPodTerminated(pod) || !this.#isManaged(node)) return [];
    const volumes = this.#byPod.get(uid) ?? new Map<string, DesiredVolume>();
    this.#byPod.set(uid, volumes);
    for (const spec of this.#specsOf(pod)) {
      const source = csiSourceOf(spec);
      if (source === undefined || !this.#needsAttach(spec)) continue;
      const desired = { volume: csiVolumeName(source), node, spec };
      if (!volumes.has(placeKey(desired))) volumes.set(placeKey(desired), desired);
    }
    return [...volumes.values()];
  }

  #specsOf(pod: Pod): readonly VolumeSpec[] {
    const { claims, volumes } = this.#caches;
    const caches = {
      claim: (key: ObjectKey) => claims.get(key),
      volume: (name: string) => volumes.get(name as ObjectKey),
    };
    return (pod.spec?.volumes ?? []).flatMap((volume) => {
      const found = resolveVolume(pod, volume, caches);
      return found.kind === "resolved" ? [found.spec] : [];
    });
  }

  #isManaged(node: string): boolean {
    const annotations = this.#caches.nodes.get(node as ObjectKey)?.metadata.annotations;
    return annotations?.[MANAGED_ATTACH_ANNOTATION] !== undefined;
  }

  #needsAttach(spec: VolumeSpec): boolean {
    const driver = this.#caches.drivers.get((csiSourceOf(spec)?.driver ?? "") as ObjectKey);
    return driver?.spec.attachRequired !== false;
  }
}
