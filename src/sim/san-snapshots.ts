import type { Clock } from "../base/clock.ts";
import { CsiError } from "../csi/errors.ts";
import type { ControllerAbility } from "./san-abilities.ts";
import { copyOf, type SanContent } from "./san-content.ts";

/** What was on a disk at one instant. The disk may be deleted, and nothing of it depends on that. */
export interface SanSnapshot extends SanContent {
  readonly handle: string;
  readonly name: string;
  readonly sourceHandle: string;
  readonly sizeBytes: bigint;
  readonly cutAtMs: number;
}

/** The disks that snapshots are cut of, and the room they share with them. */
export interface SnapshotSource {
  readonly clock: Clock;
  volume(handle: string): SanContent & { readonly sizeBytes: bigint };
  /** Refuses what the driver's present version cannot do. */
  can(ability: ControllerAbility): void;
  take(sizeBytes: bigint): void;
  give(sizeBytes: bigint): void;
  /** Told of every copy. */
  readonly onCopy: (from: string, to: string) => void;
}

/** Some storage systems cut at once and have the copy only later: one snapshot of three is ready after this. */
const LATE_MS = 15_000;

/** Snapshots of the storage system. */
export class SanSnapshots {
  readonly all = new Map<string, SanSnapshot>();
  readonly #source: SnapshotSource;
  #made = 0;

  constructor(source: SnapshotSource) {
    this.#source = source;
  }

  /** Methods of its controller service. */
  serve() {
    return {
      createSnapshot: async ({ name, sourceVolumeId }: { name: string; sourceVolumeId: string }) => {
        this.#source.can("CREATE_DELETE_SNAPSHOT");
        const there = [...this.all.values()].find((snapshot) => snapshot.name === name);
        if (there !== undefined && there.sourceHandle !== sourceVolumeId)
          throw new CsiError("ALREADY_EXISTS", `${name} is of another volume`);
        return { snapshot: this.#answerOf(there ?? this.#cut(name, sourceVolumeId)) };
      },
      deleteSnapshot: async ({ snapshotId }: { snapshotId: string }) => {
        this.#source.can("CREATE_DELETE_SNAPSHOT");
        const snapshot = this.all.get(snapshotId);
        if (this.all.delete(snapshotId)) this.#source.give(snapshot?.sizeBytes ?? 0n);
        return {};
      },
      listSnapshots: async ({ snapshotId }: { snapshotId: string }) => {
        this.#source.can("LIST_SNAPSHOTS");
        const found = [...this.all.values()].filter(
          ({ handle }) => snapshotId === "" || handle === snapshotId,
        );
        return { entries: found.map((snapshot) => ({ snapshot: this.#answerOf(snapshot) })) };
      },
    };
  }

  #cut(name: string, sourceHandle: string): SanSnapshot {
    const { clock, onCopy } = this.#source;
    const source = this.#source.volume(sourceHandle);
    const { sizeBytes } = source;
    this.#source.take(sizeBytes);
    const handle = `s${++this.#made}`;
    const cutAtMs = clock.wall().getTime();
    const snapshot = { handle, name, sourceHandle, sizeBytes, cutAtMs, ...copyOf(source) };
    this.all.set(handle, snapshot);
    onCopy(sourceHandle, handle);
    return snapshot;
  }

  #answerOf({ handle, sourceHandle, sizeBytes, cutAtMs }: SanSnapshot) {
    const isLate = Number(handle.slice(1)) % 3 === 0;
    return {
      ...{ snapshotId: handle, sourceVolumeId: sourceHandle, sizeBytes },
      creationTime: { seconds: BigInt(Math.floor(cutAtMs / 1_000)), nanos: (cutAtMs % 1_000) * 1_000_000 },
      readyToUse: !isLate || this.#source.clock.wall().getTime() >= cutAtMs + LATE_MS,
    };
  }
}
