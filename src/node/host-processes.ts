/**
 * Who has what, by the kernel: the mount namespaces of the machine, what each has mounted, and which processes live in
 * it. An API object says that a pod is gone; only this says that nobody uses its volumes any more.
 */
export interface HostProcesses {
  /**
   * One look at every process of the machine, which begins after the call. Rejects where a process could not be looked
   * at: what is not seen proves nothing.
   */
  scan(request: ProcessScanRequest): Promise<ProcessScan>;
}

export interface ProcessScanRequest {
  /** `major:minor` of filesystems: mounts of others are left out of the answer. */
  readonly filesystems: readonly string[];
  /** `major:minor` of block devices whose openers are looked for. Costs a look at each open file, so only where asked for. */
  readonly devices: readonly string[];
  /** Mount points whose users are looked for: what keeps them busy. Costs a look at each open file, too. */
  readonly mountPoints?: readonly string[];
}

export interface ProcessScan {
  readonly namespaces: readonly MountNamespace[];
  /** A process of each pod that has one, by the name of its control group. */
  readonly pods: readonly PodProcess[];
  /** Processes that have one of the devices open. */
  readonly openers: readonly (HostProcess & { readonly deviceNumber: string })[];
  /** Processes that are in one of the mount points, or have a file of it open; a few, however many there are. */
  readonly users: readonly MountUser[];
}

export interface MountUser extends HostProcess {
  readonly mountPoint: string;
  /** `has its working directory at /mnt/a`. */
  readonly how: string;
}

export interface HostProcess {
  readonly pid: number;
  /** As the kernel has it, 15 characters at most. */
  readonly command: string;
  /** Of the pod whose control group it is in; container runtimes name groups after pods. */
  readonly podUid?: string;
}

export interface PodProcess extends HostProcess {
  readonly podUid: string;
}

export interface MountNamespace {
  /** `mnt:[4026532201]`. */
  readonly name: string;
  /** Whether it is the agent's own. */
  readonly own: boolean;
  /** One for each pod that has a process in it, and one for those of no pod. */
  readonly processes: readonly HostProcess[];
  /** Of the filesystems asked for, each with the mount it is mounted on. */
  readonly mounts: readonly NamespaceMount[];
}

export interface NamespaceMount {
  readonly id: number;
  readonly parentId: number;
  readonly deviceNumber: string;
  /** Which part of that filesystem; `/` for all of it. */
  readonly root: string;
  /** As the processes of that namespace spell it. */
  readonly path: string;
  readonly source: string;
  /** Mounts of one peer group tell each other what is mounted and unmounted below them. */
  readonly peers?: number;
  /** The peer group from which it hears that, and does not tell it. */
  readonly master?: number;
}
