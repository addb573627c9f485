import type { AccessMode } from "./apps.ts";
import type { LinkState } from "./link.ts";
import type { ControllerAbility, NodeAbility } from "./san-abilities.ts";

/** What happens to a simulated cluster: workload and faults, as data, so that a failing run can be cut down to what it needs. */
export type Act =
  WorkloadAct | CopyAct | ObjectAct | NodeAct | AttachmentAct | ProcessAct | DriverAct | HostAct;

export type ActOf<K extends Act["kind"]> = Extract<Act, { readonly kind: K }>;

/** How often acts of these kinds are drawn, instead of as usual. */
export type ActWeights = Partial<Readonly<Record<Act["kind"], number>>>;

/** Values of acts by their kind. */
export type ActFields = { readonly [K in Act["kind"]]?: Partial<Omit<ActOf<K>, "kind">> };

export type WorkloadAct =
  | {
      readonly kind: "add-app";
      readonly app: string;
      readonly mode: AccessMode;
      readonly storageClass: string;
      /** A raw block device instead of a filesystem. */
      readonly block: boolean;
      readonly node: string | undefined;
      /** Of class `static`: so late an operator makes the disk and its PersistentVolume. */
      readonly volumeAfterMs?: number | undefined;
    }
  /** Its process ends by itself, and the pod is over although nobody deletes it. */
  | { readonly kind: "finish-pod"; readonly app: string }
  | { readonly kind: "remove-app"; readonly app: string }
  | {
      readonly kind: "delete-pod";
      readonly app: string;
      readonly force: boolean;
      readonly node: string | undefined;
    }
  | { readonly kind: "grow"; readonly app: string }
  /** Somebody puts a pod on a node himself, past the scheduler, for a claim that does not exist. */
  | { readonly kind: "pod-without-claim"; readonly node: string; readonly forMs: number };

/** Of what is in an app's volume. */
export type CopyAct =
  | { readonly kind: "snapshot"; readonly app: string; readonly snapshot: string }
  | { readonly kind: "delete-snapshot"; readonly snapshot: string }
  /** An app whose claim is made of a snapshot. */
  | ({ readonly kind: "restore"; readonly snapshot: string } & NewCopy)
  /** An app whose claim is made of another's. */
  | ({ readonly kind: "clone"; readonly of: string } & NewCopy);

interface NewCopy {
  readonly app: string;
  readonly mode: AccessMode;
  readonly node: string | undefined;
  /** Its class waits for the first pod. */
  readonly late: boolean;
}

/** Objects made again under a pod that runs: it keeps its disk, and the next pod has what the objects say then. */
export type ObjectAct =
  /** The claim, without regard to its finalizer; the app's controller makes another, and a static one gets a disk after a while. */
  | { readonly kind: "replace-claim"; readonly app: string; readonly volumeAfterMs: number }
  /** The PersistentVolume, under the same name for another disk. */
  | { readonly kind: "replace-disk"; readonly app: string; readonly forMs: number }
  /** The PersistentVolume, under another name for the same disk, and the claim for it. */
  | { readonly kind: "rename-volume"; readonly app: string; readonly forMs: number };

export type NodeAct =
  | { readonly kind: "drain"; readonly node: string; readonly forMs: number }
  | { readonly kind: "delete-node"; readonly node: string }
  /** A machine that was never there. */
  | { readonly kind: "join"; readonly node: string }
  /** Drained for so long, then its machine is taken away for good and its Node deleted. */
  | { readonly kind: "leave"; readonly node: string; readonly forMs: number }
  /** Another machine takes its name, with an empty disk; its Node is deleted before, or not. */
  | {
      readonly kind: "reinstall";
      readonly node: string;
      readonly deleted: boolean;
      readonly forMs: number;
    }
  | {
      readonly kind: "power-off";
      readonly node: string;
      readonly forMs: number;
      readonly taint: boolean;
      /** So much later than the agent its driver starts again. */ readonly driverAfterMs?:
        number | undefined;
    }
  /** Everything at once, the API server included: a computer room, or the one computer of `mooring up`. */
  | { readonly kind: "blackout"; readonly forMs: number };

export type AttachmentAct =
  | {
      readonly kind: "foreign-attachment";
      readonly app: string;
      readonly node: string;
      /** Under the name that ours would have on this node. */
      readonly disguisedFor: string | undefined;
      readonly forMs: number;
    }
  /** One that the controller made, under whoever uses the disk. */
  | { readonly kind: "delete-attachment"; readonly app: string };

export type ProcessAct =
  | { readonly kind: "kill"; readonly process: string; readonly forMs: number }
  | { readonly kind: "stop"; readonly process: string; readonly forMs: number }
  | { readonly kind: "freeze"; readonly process: string; readonly forMs: number }
  | { readonly kind: "kill-server"; readonly forMs: number }
  | {
      readonly kind: "link";
      readonly process: string;
      readonly state: Exclude<LinkState, "up">;
      readonly forMs: number;
    }
  | { readonly kind: "lossy"; readonly process: string; readonly rate: number; readonly forMs: number }
  /** An operator ends every replica of ours, with SIGTERM or without, has upstream's controller run, and goes back the same way. */
  | {
      readonly kind: "original-controller";
      readonly kill: boolean;
      /** Of what goes wrong with its requests. */
      readonly rate: number;
      readonly forMs: number;
    }
  /** Somebody, or NTP, sets the clock of the machine that a process runs on. */
  | { readonly kind: "set-clock"; readonly process: string; readonly byMs: number };

export type DriverAct =
  | {
      readonly kind: "driver-faults";
      readonly machine: string;
      readonly rate: number;
      readonly slowMs: number;
      readonly forMs: number;
    }
  | { readonly kind: "pool-full"; readonly forMs: number }
  /** A driver that is upgraded and takes fewer volumes a node; the storage system refuses more. */
  | {
      readonly kind: "limit-volumes";
      readonly node: string;
      readonly volumesMax: number;
      readonly forMs: number;
    }
  /** A driver that is replaced by one which can more or less, and again by the old one: a part of its controller service, or of one node's. */
  | { readonly kind: "upgrade-controller"; readonly lacks: ControllerAbility; readonly forMs: number }
  | {
      readonly kind: "upgrade-node-driver";
      readonly node: string;
      readonly lacks: NodeAbility;
      readonly forMs: number;
    }
  | { readonly kind: "rename-node-id"; readonly node: string }
  /** The CSIDriver object is deleted, and made again after a while. */
  | { readonly kind: "delete-csi-driver"; readonly forMs: number }
  /** It is made again as that of a driver whose volumes need no attach, which is wrong, and put right after a while. */
  | { readonly kind: "switch-csi-driver"; readonly forMs: number };

export type HostAct =
  /** Calls of its kernel are refused: a disk that fails or is full, mounts that are busy. */
  | { readonly kind: "host-faults"; readonly node: string; readonly rate: number; readonly forMs: number }
  /** A mount that answers nobody. */
  | { readonly kind: "hang-mount"; readonly node: string; readonly forMs: number }
  /** A mount whose server or device is gone: ENOTCONN, until it is unmounted or the server is back. */
  | { readonly kind: "stale-mount"; readonly node: string; readonly forMs: number }
  /** A mount that a process of the host keeps busy. */
  | { readonly kind: "hold-mount"; readonly node: string; readonly forMs: number }
  /** Processes in the kernel that no signal reaches. */
  | { readonly kind: "stuck"; readonly node: string; readonly forMs: number };

type Field = string | number | boolean | undefined;

/** `kill node-1 for 12.3 s`, for people. */
export function renderAct(act: Act): string {
  const { kind, ...fields } = act;
  const parts = Object.entries(fields).flatMap(([key, value]: [string, Field]) => {
    if (value === undefined || value === false) return [];
    if (key.endsWith("Ms")) return [`${key.slice(0, -2)}=${(Number(value) / 1_000).toFixed(1)}s`];
    if (typeof value !== "number") return [`${key}=${value}`];
    return [`${key}=${Number.isInteger(value) ? value : value.toFixed(3)}`];
  });
  return [kind, ...parts].join(" ");
}
