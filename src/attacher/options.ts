export interface AttacherOptions {
  /** Of both lanes together, and as many again for PersistentVolumes. */
  readonly workers: number;
  /** Of each call to the driver, and of one whole walk over its list. */
  readonly timeoutMs: number;
  readonly retryInitialMs: number;
  readonly retryMaxMs: number;
  /** Of one page of the driver's list; 0 for no limit. */
  readonly maxEntries: number;
  /** Between two looks at the driver's list. */
  readonly reconcileSyncMs: number;
  /** For volumes that name no filesystem. */
  readonly defaultFsType: string;
  /** Whether a volume for one node is refused to a second one while the first may have it. */
  readonly singleNodeGuard: boolean;
  /** How long what is under way may take to end once the end was asked for. */
  readonly drainMs: number;
  /** Whether numbers of gRPC codes go into `attachError`: the gate MutableCSINodeAllocatableCount. */
  readonly errorCodes: boolean;
  /** Tells the queues of several drivers in one process apart. */
  readonly queueSuffix: string;
}

/** Upstream's. */
export const DEFAULT_ATTACHER_OPTIONS: AttacherOptions = {
  workers: 10,
  timeoutMs: 15_000,
  retryInitialMs: 1_000,
  retryMaxMs: 300_000,
  maxEntries: 0,
  reconcileSyncMs: 60_000,
  defaultFsType: "",
  singleNodeGuard: true,
  // Below the 30 s that a kubelet gives a pod, and above one call that takes all of its 15 s.
  drainMs: 20_000,
  errorCodes: true,
  queueSuffix: "",
};
