import type { Pod } from "kubernetes-types/core/v1.js";

/** A pod's hold on a claim. */
export interface ClaimUse {
  readonly claim: string;
  /** Set where the claim was to be made for the pod: another claim of that name is none of the pod's business. */
  readonly madeForUid: string | undefined;
}

/**
 * The claims that a pod keeps from going. A pod without a node keeps none: no node will start it with a claim that is
 * being deleted, and counting it would leave both waiting. Nor does one that has ended.
 */
export function claimsHeldBy({ metadata, spec, status }: Pod): ClaimUse[] {
  if ((spec?.nodeName ?? "") === "" || status?.phase === "Succeeded" || status?.phase === "Failed") return [];
  return (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }): ClaimUse[] => {
    if (persistentVolumeClaim !== undefined) {
      return [{ claim: persistentVolumeClaim.claimName, madeForUid: undefined }];
    }
    if (ephemeral === undefined) return [];
    return [{ claim: `${metadata?.name ?? ""}-${name}`, madeForUid: metadata?.uid }];
  });
}

/** Claims by the pods that hold them, within one namespace or many: keys are whatever the caller makes unique. */
export class ClaimUsers {
  readonly #claims = new Map<string, readonly ClaimUse[]>();
  readonly #users = new Map<string, Map<string, ClaimUse>>();

  clear(): void {
    this.#claims.clear();
    this.#users.clear();
  }

  /** Replaces what the pod holds; returns the claims that it has let go of. */
  set(pod: string, uses: readonly ClaimUse[]): readonly string[] {
    const before = this.#claims.get(pod) ?? [];
    for (const { claim } of before) this.#drop(claim, pod);
    if (uses.length === 0) this.#claims.delete(pod);
    else this.#claims.set(pod, uses);
    for (const use of uses) this.#add(use, pod);
    return before.flatMap(({ claim }) => (this.#users.get(claim)?.has(pod) === true ? [] : [claim]));
  }

  usesOf(claim: string): Iterable<ClaimUse> {
    return this.#users.get(claim)?.values() ?? [];
  }

  #add(use: ClaimUse, pod: string): void {
    let users = this.#users.get(use.claim);
    if (users === undefined) this.#users.set(use.claim, (users = new Map<string, ClaimUse>()));
    // A claim that is named outright is in use whoever it was made for.
    if (users.get(pod)?.madeForUid !== undefined || !users.has(pod)) users.set(pod, use);
  }

  #drop(claim: string, pod: string): void {
    const users = this.#users.get(claim);
    users?.delete(pod);
    if (users?.size === 0) this.#users.delete(claim);
  }
}
