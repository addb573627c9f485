/** What an operator can set; the command line gives each its flag. */
export interface AttachDetachOptions {
  /** `--disable-attach-detach-reconcile-sync`: VolumeAttachments are not compared with what we hold attached. */
  readonly disableReconcileSync: boolean;
  /** `--attach-detach-reconcile-sync-period`; at least 1 s. */
  readonly reconcileSyncPeriodMs: number;
  /** `--disable-force-detach-on-timeout`: only the out-of-service taint forces. */
  readonly disableForceDetachOnTimeout: boolean;
  /** `--detach-policy`, the first that matches. */
  readonly detachPolicies: readonly DetachPolicy[];
  /** Where the detach timers are kept over restarts: the namespace of the Lease. */
  readonly timersNamespace: string;
}

/** When a volume may be taken from a node that still says it uses it. */
export interface DetachPolicy {
  readonly match:
    | { readonly kind: "driver"; readonly driver: string }
    | { readonly kind: "storage-class"; readonly storageClass: string };
  readonly force: ForceRule;
}

export type ForceRule =
  /** Never, whatever happens: somebody will unmount it or remove the VolumeAttachment by hand. */
  | { readonly kind: "never" }
  /** Unwanted for so long on a node that is not healthy; or the out-of-service taint. */
  | { readonly kind: "after"; readonly ms: number }
  /** Only the out-of-service taint, by which an operator says that the machine is off. */
  | { readonly kind: "when-fenced" };

/** Upstream's: how long a node that is not healthy may keep a volume nobody wants. */
export const FORCE_AFTER_MS = 6 * 60_000;

export const DEFAULT_OPTIONS: AttachDetachOptions = {
  disableReconcileSync: false,
  reconcileSyncPeriodMs: 60_000,
  disableForceDetachOnTimeout: false,
  detachPolicies: [],
  timersNamespace: "kube-system",
};
