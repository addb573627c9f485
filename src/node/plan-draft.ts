import type { Finding } from "./evidence/evidence.ts";
import type { VolumeTraits } from "./plugin.ts";
import type { WaitingFor } from "./waiting.ts";
import type { OperationName, PodMount, Want } from "./world.ts";

/** What a plan is made of: what it may do, why it waits, and what it has to know besides the volume. */
export interface Plan {
  readonly actions: readonly Action[];
  /** By pod uid; "" for the volume itself. */
  readonly waits: ReadonlyMap<string, Wait>;
  /** In the clock's `now()`: look again then, even if nothing happens. */
  readonly revisitAtMs: number | undefined;
}

/** Since when is known to whoever saw the wait before. */
export type Wait = Omit<WaitingFor, "sinceMs"> & {
  /** What the pod should be told once, when the wait has lasted that long. */
  readonly tell?: { readonly message: string; readonly afterMs: number };
};

export type Action =
  /** It is there for us now: nothing to do but to note it. */
  | { readonly kind: "mark-attached"; readonly devicePath: string }
  /** Where no controller does that. */
  | { readonly kind: "attach"; readonly want: Want }
  | { readonly kind: "detach" }
  | { readonly kind: "mount-device"; readonly want: Want }
  | { readonly kind: "mount"; readonly want: Want }
  | { readonly kind: "expand"; readonly want: Want; readonly mount: PodMount }
  | { readonly kind: "unmount"; readonly mount: PodMount }
  | { readonly kind: "unmount-device" }
  /** Who has it is asked of the kernel; the answer brings the volume back. "" asks for the volume itself. */
  | { readonly kind: "look-for-holders"; readonly podUid: string }
  /** Nothing of it is left on this node. */
  | { readonly kind: "forget" }
  /** Found without a name, and the pod has it by its own name now: that one is taken down when its time comes. */
  | { readonly kind: "disown"; readonly mount: PodMount }
  /** A mount under way is for a pod that is gone. */
  | { readonly kind: "abandon"; readonly podUid: string };

/** What the plan needs to know besides the volume. */
export interface Surroundings {
  readonly nowMs: number;
  readonly nodeName: string;
  readonly traits: (want: Want) => VolumeTraits;
  /** All pods are known and, after a restart, so is the node's status. */
  readonly readyToUnmount: boolean;
  /** A volume of this live pod that cannot be followed right now, and so may be this one. */
  readonly unresolved: (podUid: string) => string | undefined;
  /** Its containers may run. */
  readonly isLive: (podUid: string) => boolean;
  /** Another volume that lies where this one would. */
  readonly namesake: (want: Want) => string | undefined;
  /** How a pod that wants a volume of this plugin by the same name stands to it; `wants-place`: as a device, which lies where this one does. */
  readonly adopter: (mount: PodMount) => "wants" | "wants-place" | "holds" | undefined;
  /** Some pod asked for objects that have not come yet. */
  readonly loading: boolean;
  /** False: this node attaches for itself. */
  readonly controllerAttaches: boolean;
  /** The server has confirmed it in `volumesInUse`. */
  readonly reportedInUse: boolean;
  /** From a node object no older than that confirmation; undefined where it does not list the volume. */
  readonly attachedPath: string | undefined;
  /** What the kernel said of who has it, for a pod or, with "", for the volume; undefined where it was not asked. */
  readonly evidence: (podUid: string) => Finding | undefined;
  readonly backoff: (operation: OperationName, podUid?: string) => Backoff | undefined;
  /** `pod shop/web`, also of one that is gone as long as a volume of it is here; else by its uid. */
  readonly podName: (podUid: string) => string;
  /** A moment of the clock's `now()` as people write it. */
  readonly timeOf: (ms: number) => string;
}

export interface Backoff {
  readonly operation: OperationName;
  readonly untilMs: number;
  readonly lastError: string;
}

/** A plan while it is being made. */
export class Draft implements Plan {
  readonly actions: Action[] = [];
  readonly waits = new Map<string, Wait>();
  revisitAtMs: number | undefined;

  act(action: Action): undefined {
    this.actions.push(action);
  }

  wait(key: string, wait: Wait): undefined {
    this.waits.set(key, wait);
    if (wait.untilMs !== undefined) this.revisitAtMs = Math.min(this.revisitAtMs ?? Infinity, wait.untilMs);
  }
}
