import { setTimeout as sleep } from "node:timers/promises";
import type { Node } from "../../src/kube/api/node.ts";
import type { Pod } from "../../src/kube/api/pod.ts";
import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import { inParallel, openApi, type Api } from "./api.ts";
import { measureCeiling, type CeilingResult } from "./ceiling.ts";
import {
  ATTACHMENTS,
  createEstate,
  createPod,
  deletePod,
  indexOf,
  podsPath,
  removeEstate,
  type Estate,
} from "./estate.ts";
import { percentilesOf, type Percentiles } from "./percentiles.ts";

/** What the cluster is put under, in a process that is fresh for each step and watches what comes of it. */
export type ClusterTask = { readonly kubeconfig: string; readonly estate: Estate } & (
  | { readonly task: "prepare" | "remove" }
  | { readonly task: "ceiling"; readonly count: number }
  | {
      readonly task: "attach" | "detach";
      /** Of the estate's volumes, from the first on. */
      readonly from: number;
      readonly count: number;
      /** Pods a second; undefined for as fast as the server takes them. */
      readonly perSecond?: number | undefined;
    }
);

export interface AttachResult {
  /** From the first pod until the last node lists its volume. */
  readonly ms: number;
  readonly perSecond: number;
  /** Until the last pod was created: no controller can be faster than this. */
  readonly podsMs: number;
  /** From the pod's event to that of its VolumeAttachment, both seen here. */
  readonly podToAttachment: Percentiles;
  /** From "attached" in the VolumeAttachment to its name in the node's status. */
  readonly attachedToNode: Percentiles;
}

export interface DetachResult {
  /** From the first deletion until the last VolumeAttachment is gone. */
  readonly ms: number;
  readonly perSecond: number;
}

const IN_FLIGHT = 32;
/** A controller that has not finished by then never will: the slowest took 230 s for 20,000 on a machine of its own. */
const DEADLINE_MS = 800_000;

export async function runClusterTask(
  task: ClusterTask,
): Promise<AttachResult | DetachResult | CeilingResult | null> {
  const api = await openApi(task.kubeconfig);
  switch (task.task) {
    case "prepare":
      await createEstate(api, task.estate);
      return null;
    case "remove":
      await removeEstate(api, task.estate);
      return null;
    case "ceiling":
      return measureCeiling(api, task);
    case "attach":
      return measureAttach(api, task);
    case "detach":
      return measureDetach(api, task);
  }
}

type Measured = Extract<ClusterTask, { task: "attach" | "detach" }>;

/** When something was first seen of each volume. */
class Sightings {
  readonly #atMs = new Map<number, number>();
  readonly #expected: number;
  #complete: () => void = () => undefined;
  readonly all: Promise<void>;

  constructor(expected: number) {
    this.#expected = expected;
    this.all = new Promise((resolve) => (this.#complete = resolve));
  }

  see(volume: number): void {
    if (Number.isNaN(volume) || this.#atMs.has(volume)) return;
    this.#atMs.set(volume, performance.now());
    if (this.#atMs.size === this.#expected) this.#complete();
  }

  get size(): number {
    return this.#atMs.size;
  }

  since(earlier: Sightings): Percentiles {
    // Two watches may tell two things in the wrong order; that took no time.
    return percentilesOf(
      [...this.#atMs].map(([volume, atMs]) => Math.max(0, atMs - (earlier.#atMs.get(volume) ?? NaN))),
    );
  }
}

async function measureAttach(api: Api, task: Measured): Promise<AttachResult> {
  const { estate, from, count, perSecond } = task;
  const [pods, created, attached, listed] = Array.from({ length: 4 }, () => new Sightings(count)) as [
    Sightings,
    Sightings,
    Sightings,
    Sightings,
  ];
  await api.watch<Pod>(podsPath(estate), (type, { metadata }) => {
    if (type === "ADDED") pods.see(indexOf(estate, metadata.name ?? ""));
  });
  await api.watch<VolumeAttachment>(ATTACHMENTS, (type, { spec, status }) => {
    const volume = indexOf(estate, spec.source.persistentVolumeName ?? "");
    if (type !== "DELETED") created.see(volume);
    if (type !== "DELETED" && status?.attached) attached.see(volume);
  });
  await api.watch<Node>("/api/v1/nodes", (_type, { status }) => {
    for (const { name } of status?.volumesAttached ?? [])
      listed.see(indexOf(estate, name.slice(name.indexOf("^") + 1)));
  });
  const startedAtMs = performance.now();
  await spread(count, perSecond, (index) => createPod(api, estate, from + index));
  const podsMs = performance.now() - startedAtMs;
  await within(DEADLINE_MS, listed.all, () => `${listed.size} of ${count} volumes were listed`);
  const ms = performance.now() - startedAtMs;
  return {
    ms,
    perSecond: (count / ms) * 1_000,
    podsMs,
    podToAttachment: created.since(pods),
    attachedToNode: listed.since(attached),
  };
}

async function measureDetach(api: Api, { estate, from, count }: Measured): Promise<DetachResult> {
  const gone = new Sightings(count);
  await api.watch<VolumeAttachment>(ATTACHMENTS, (type, { spec }) => {
    if (type === "DELETED") gone.see(indexOf(estate, spec.source.persistentVolumeName ?? ""));
  });
  const startedAtMs = performance.now();
  await spread(count, undefined, (index) => deletePod(api, estate, from + index));
  await within(DEADLINE_MS, gone.all, () => `${gone.size} of ${count} VolumeAttachments were deleted`);
  const ms = performance.now() - startedAtMs;
  return { ms, perSecond: (count / ms) * 1_000 };
}

/** By the clock where a rate is asked for: one that is late does not make the next one late. */
async function spread(
  count: number,
  perSecond: number | undefined,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  if (perSecond === undefined) return inParallel(count, IN_FLIGHT, work);
  const startedAtMs = performance.now();
  const under: Promise<unknown>[] = [];
  for (let index = 0; index < count; index++) {
    await sleep(Math.max(0, startedAtMs + (index * 1_000) / perSecond - performance.now()));
    under.push(work(index));
  }
  await Promise.all(under);
}

async function within(ms: number, done: Promise<void>, sofar: () => string): Promise<void> {
  const over = new AbortController();
  const late = sleep(ms, undefined, { signal: over.signal }).then(() => {
    throw new Error(`${sofar()} within ${ms / 1_000} s`);
  });
  await Promise.race([done, late]).finally(() => over.abort());
  late.catch(() => undefined);
}
