import type { VolumeName } from "../volumes/names.ts";
import type { BareStorage } from "./bare-storage.ts";
import { watchPublishes } from "./checkers/published-once.ts";
import type { SimKubelet } from "./kubelet.ts";

/**
 * Watches storage and kubelets, and writes down what would have cost data:
 * - a volume for one node published on two;
 * - a volume unpublished while a kubelet that is alive has it mounted;
 * - a volume mounted where it is not published.
 *
 * A kubelet that was stopped does not count: taking its volumes is what a forced detach is for.
 */
export function createAttachmentChecker(world: {
  readonly storages: BareStorage;
  violate(text: string): void;
}) {
  const { storages } = world;
  const kubelets = new Set<SimKubelet>();

  watchPublishes(world);
  storages.on({
    unpublished({ handle }, node) {
      for (const kubelet of kubelets) {
        const hurt = kubelet.node === node && kubelet.mounted.has(handle as VolumeName);
        if (hurt && kubelet.running) world.violate(`${handle} was taken from ${node}, where it is mounted`);
      }
    },
  });

  function watch(kubelet: SimKubelet): void {
    kubelets.add(kubelet);
    kubelet.onMount(({ what, volume, node }) => {
      if (what === "mount" && isCsi(volume) && !storages.publishedOn(volume).includes(node))
        world.violate(`${volume} was mounted on ${node}, where it is not published`);
    });
  }

  return { watch };
}

/** Only those pass through the storage. */
function isCsi(volume: VolumeName): boolean {
  return volume.startsWith("kubernetes.io/csi/");
}
