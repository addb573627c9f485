import type { Logger } from "../base/log.ts";
import { uuid, type Random } from "../base/random.ts";
import type { Capability } from "./validate.ts";
import { HostError, type Host } from "./host.ts";
import type { Reserve } from "./reserve.ts";

/**
 * What must survive a kill: one record an object, each in a file of its own that is replaced as a whole. An intent
 * (`creating`, `staging`, ...) is on disk before its first effect, the result after its last, so recovery knows what may
 * be half done. A damaged record is set aside and reported; it stops nobody else's.
 */
export interface VolumeRecord {
  readonly id: string;
  readonly name: string;
  readonly phase: "creating" | "ready" | "deleting";
  readonly sizeBytes: bigint;
  readonly accessType: "mount" | "block";
  /** As asked for at creation; empty for the default. */
  readonly fsType: string;
  readonly thick: boolean;
  /** The simulated pool it counts against; empty for none. */
  readonly kind: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly mutableParameters: Readonly<Record<string, string>>;
  readonly source?: { readonly kind: "snapshot" | "volume"; readonly id: string };
  readonly createdAt: string;
  readonly attachments: readonly Attachment[];
  /** What was made on the image, by whichever node came first; none while it is blank, and for raw devices. */
  readonly filesystem?: FilesystemRecord;
  /** An ephemeral one that no pod had yet: nobody's data is lost with it. */
  readonly unused?: boolean;
}

export type FilesystemRecord =
  | {
      /** mkfs was begun on an image that was read completely and was zero, and is not known to have ended. */
      readonly phase: "formatting";
      readonly type: string;
      readonly since: string;
      /** The identity of the file that was read. */
      readonly image: string;
    }
  | {
      /** Never to be formatted again. */
      readonly phase: "formatted";
      readonly type: string;
      readonly since: string;
    };

export interface Attachment {
  readonly nodeId: string;
  readonly readonly: boolean;
  readonly capability: Capability;
}

export interface SnapshotRecord {
  readonly id: string;
  readonly name: string;
  readonly phase: "creating" | "ready" | "deleting";
  readonly sourceVolumeId: string;
  readonly sizeBytes: bigint;
  readonly accessType: "mount" | "block";
  readonly fsType: string;
  readonly kind: string;
  /** The moment of the cut. */
  readonly createdAt: string;
  readonly groupId?: string;
  /** Of its source at that moment. */
  readonly filesystem?: FilesystemRecord;
}

export interface GroupRecord {
  readonly id: string;
  readonly name: string;
  readonly phase: "creating" | "ready" | "deleting";
  readonly sourceVolumeIds: readonly string[];
  readonly snapshotIds: readonly string[];
  readonly createdAt: string;
}

/** A volume on one node: its staging and its targets. `id` is the volume's. */
export interface NodeRecord {
  readonly id: string;
  readonly nodeId: string;
  readonly phase: "staging" | "staged" | "unstaging";
  readonly stagingPath: string;
  readonly capability: Capability;
  /** Which of all devices that ever had its number; see `LoopDevice`. Verified before each use. */
  readonly device?: { readonly path: string; readonly diskseq: string; readonly backing: string };
  /** Found in the kernel without a record: with which capability it was staged is not known. */
  readonly adopted?: boolean;
  readonly targets: readonly Target[];
}

export interface Target {
  readonly path: string;
  readonly phase: "publishing" | "published" | "unpublishing";
  readonly readonly: boolean;
  readonly capability: Capability;
}

export interface Table<R extends { readonly id: string }> {
  get(id: string): R | undefined;
  all(): readonly R[];
  /** As it is on disk now, for records that another process writes. */
  read(id: string): Promise<R | undefined>;
  /** Durable when it returns. One that lets go of something is written on a full disk too. */
  put(record: R, options?: { readonly lettingGo?: boolean }): Promise<void>;
  remove(id: string): Promise<void>;
  /** Reads everything. */
  load(): Promise<void>;
  /** Ids without a record that can be read, found by `load`: kept as they are. */
  damaged(): readonly string[];
  /** What is wrong with one as it is on disk now; undefined for one with a record, and where there is nothing of it. */
  damage(id: string): Promise<string | undefined>;
}

export interface TableOptions {
  readonly directory: string;
  readonly tmp: string;
  /** `folder`: `<id>/meta.json`, beside the image; `file`: `<id>.json`. */
  readonly layout: "folder" | "file";
  readonly reserve: Reserve;
}

/** For records of calls that give something back: unpublish, unstage, detach, delete, and what a start finishes. */
export const LETTING_GO = { lettingGo: true } as const;

/** Ids are ours and random; anything else names nothing, and so never becomes a path. */
export const ID = /^(?:vol|eph|snap|group)-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;

export function newId(kind: "vol" | "snap" | "group", random: Random): string {
  return `${kind}-${uuid(random)}`;
}

export function createTable<R extends { readonly id: string }>(
  { host, random, log }: { readonly host: Host; readonly random: Random; readonly log: Logger },
  { directory, tmp, layout, reserve }: TableOptions,
): Table<R> {
  const records = new Map<string, R>();
  const damaged = new Set<string>();
  const pathOf = (id: string) => `${directory}/${id}${layout === "folder" ? "/meta.json" : ".json"}`;

  async function read(id: string): Promise<R | undefined> {
    if (!ID.test(id)) return undefined;
    const text = await host.files.read(pathOf(id));
    return text === undefined ? undefined : parseRecord<R>(text, id);
  }

  async function write(record: R): Promise<void> {
    const draft = `${tmp}/${uuid(random)}.json`;
    try {
      await host.files.writeDurable(draft, toText(record));
      await host.files.rename(draft, pathOf(record.id));
    } catch (error) {
      // On a full disk an empty file would be left, and take an inode with it. A start clears what cannot go now.
      await host.files.removeFile(draft).catch(() => undefined);
      throw error;
    }
  }

  async function damage(id: string): Promise<string | undefined> {
    if (!ID.test(id)) return undefined;
    const text = await host.files.read(pathOf(id));
    if (text !== undefined)
      return parseRecord<R>(text, id) === undefined ? "its record cannot be understood" : undefined;
    if (layout === "file") return undefined;
    // The staging directory of an ephemeral volume holds nothing itself.
    const left = (await host.files.list(`${directory}/${id}`)).filter((name) => name !== "mount");
    return left.length === 0 ? undefined : `its record is missing, and ${left.join(", ")} is there`;
  }

  /** One that cannot be read stops nobody else's. */
  async function loadOne(id: string): Promise<void> {
    let why: string | undefined;
    try {
      const record = await read(id);
      if (record !== undefined) records.set(id, record);
      else why = await damage(id);
    } catch (error) {
      why = `its record cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (why === undefined) return;
    damaged.add(id);
    log.error("record damaged", {
      path: pathOf(id),
      why,
      next: "everything of it is kept; the object is reported abnormal until the record is back",
    });
  }

  return {
    get: (id) => records.get(id),
    all: () => [...records.values()],
    read,
    async put(record, { lettingGo = false } = {}) {
      try {
        await write(record);
      } catch (error) {
        const isFull = error instanceof HostError && error.code === "NoSpace";
        const isWritten = lettingGo && isFull && (await reserve.replace(pathOf(record.id), toText(record)));
        if (!isWritten) throw error;
      }
      records.set(record.id, record);
      await reserve.refill();
    },
    async remove(id) {
      await host.files.removeFile(pathOf(id));
      records.delete(id);
      await reserve.refill();
    },
    async load() {
      for (const name of await host.files.list(directory)) {
        const id = layout === "folder" ? name : name.replace(/\.json$/, "");
        if (ID.test(id)) await loadOne(id);
      }
    },
    damaged: () => [...damaged],
    damage,
  };
}

/** Sizes are bigint in memory and decimal text on disk: fields named `...Bytes`. */
function toText(record: object): string {
  return `${JSON.stringify(record, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))}\n`;
}

/** A record in another phase is damaged, or of a version to come: a start would take it for something to undo. */
const PHASES = new Set(["creating", "ready", "deleting", "staging", "staged", "unstaging"]);

function parseRecord<R extends { readonly id: string }>(text: string, id: string): R | undefined {
  try {
    const revive = (key: string, value: unknown) =>
      key.endsWith("Bytes") && typeof value === "string" ? BigInt(value) : value;
    const record = JSON.parse(text, revive) as unknown;
    if (typeof record !== "object" || record === null) return undefined;
    const { id: own, phase } = record as { id?: unknown; phase?: unknown };
    return own === id && typeof phase === "string" && PHASES.has(phase) ? (record as R) : undefined;
  } catch {
    return undefined;
  }
}
