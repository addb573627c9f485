import type { Context } from "../context.ts";

/**
 * Pods that a kubelet runs from files. The API server never knew their uids, so to the agent they look like pods that are
 * gone; nothing of them is ever ours.
 */

/** A kubelet names them by a hash of their manifest; uids of an API server have dashes. */
const HASH = /^[0-9a-f]{32}$/;

export function isStaticPod(podUid: string): boolean {
  return HASH.test(podUid);
}

/** Also one whose manifest gives it a uid of its own: its mirror in the API says which. */
export function isMirrored({ caches }: Pick<Context, "caches">, podUid: string): boolean {
  for (const { metadata } of caches.pods.objects()) {
    const { annotations = {} } = metadata;
    const hash = annotations["kubernetes.io/config.mirror"] ?? annotations["kubernetes.io/config.hash"];
    if (hash === podUid) return true;
  }
  return false;
}
