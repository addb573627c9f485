import type { VolumeName } from "../volumes/names.ts";
import type { CsiBackend } from "./csi-backend.ts";
import type { SimKubelet } from "./kubelet.ts";

/**
 * Watches storage and kubelets, and writes down what would have cost data:
 * - a volume for one node published on two;
 * - a volume unpublished while a kubelet that is alive has it mounted;
 * - a volume mounted where it is not published.
 *
 * A kubelet that was stopped does not count: taking its volumes is what a forced detach is for.
 */
export function createAttachmentChecker({
  backend,
  maySeveralNodesHave,
  violate,
}: {
  backend: CsiBackend;
  maySeveralNodesHave: (volume: VolumeName) => boolean;
  violate: (text: string) => void;
}) {
  const kubelets = new Set<SimKubelet>();

  backend.onCall(({ what, volume, node }) => {
    const holders = backend.publishedOn(volume);
    if (what === "publish" && holders.length > 1 && !maySeveralNodesHave(volume))
      violate(`${volume} is published on ${holders.join(" and ")}`);
    for (const kubelet of kubelets) {
      const hurt = what === "unpublish" && kubelet.node === node && kubelet.mounted.has(volume);
      if (hurt && kubelet.running) violate(`${volume} was taken from ${node}, where it is mounted`);
    }
  });

  function watch(kubelet: SimKubelet): void {
    kubelets.add(kubelet);
    kubelet.onMount(({ what, volume, node }) => {
      if (what === "mount" && isCsi(volume) && !backend.publishedOn(volume).includes(node))
        violate(`${volume} was mounted on ${node}, where it is not published`);
    });
  }

  return { watch };
}

/** Only those pass through the backend. */
function isCsi(volume: VolumeName): boolean {
  return volume.startsWith("kubernetes.io/csi/");
}
