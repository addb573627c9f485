import { setTimeout as sleep } from "node:timers/promises";
import { inParallel } from "../../bench/attach-detach/api.ts";
import { usageOf } from "../../bench/attach-detach/contestants.ts";
import { percentilesOf, type Percentiles } from "../../bench/attach-detach/percentiles.ts";
import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import { toKey } from "../../src/kube/object.ts";
import type { Informer } from "../../src/kube/informer/informer.ts";
import type { Api } from "../harness/api.ts";
import type { Program } from "../harness/stage.ts";
import { until } from "../harness/until.ts";
import { INSTANT_DRIVER } from "./instant-driver.ts";
import { requestsSent } from "./requests.ts";

/** What one attacher did with so many VolumeAttachments at once, and then with their deletion. */
export interface AttacherSide {
  readonly attachPerSecond: number;
  readonly detachPerSecond: number;
  /** From the answer to the creation of a VolumeAttachment until it was seen attached. */
  readonly attach: Percentiles;
  /** For one attach and one detach, as the server counted them. */
  readonly requestsEach: number;
  readonly cpuMs: number;
  readonly rssBytes: number;
}

const NODES = 20;
const IN_FLIGHT = 32;
const WAIT_MS_MAX = 600_000;
const WARM_UP = toKey({ name: "warm-up" });
const ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments";

/** The load itself only creates and deletes attachments; what is left of these was sent by the attacher. */
const ATTACHERS_OWN = [
  "volumeattachments",
  "volumeattachments/status",
  "persistentvolumes",
  "nodes",
  "csinodes",
].flatMap((resource) => ["GET", "PATCH", "PUT"].map((verb) => `${verb} ${resource}`));

/** Nodes that know the driver, and volumes to attach to them. */
export async function prepareAttacherLoad(api: Api, count: number): Promise<void> {
  const drivers = (nodeID: string) => [{ name: INSTANT_DRIVER, nodeID, topologyKeys: null }];
  await inParallel(NODES, IN_FLIGHT, async (index) => {
    const name = `attacher-${index}`;
    await api.send("POST", "/api/v1/nodes", { metadata: { name } });
    await api.send("POST", "/apis/storage.k8s.io/v1/csinodes", {
      metadata: { name },
      spec: { drivers: drivers(name) },
    });
  });
  await inParallel(count, IN_FLIGHT, (index) =>
    api.send("POST", "/api/v1/persistentvolumes", {
      metadata: { name: `attacher-${index}` },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        persistentVolumeReclaimPolicy: "Retain",
        csi: { driver: INSTANT_DRIVER, volumeHandle: `attacher-${index}` },
      },
    }),
  );
}

/** One live copy of the attachments for all turns, so that every turn costs the server the same. */
export interface AttacherLoad {
  readonly api: Api;
  readonly attachments: Informer<VolumeAttachment>;
}

export async function measureAttacher(
  { api, attachments }: AttacherLoad,
  attacher: Program,
  count: number,
): Promise<AttacherSide> {
  const attachedAtMs = new Map<string, number>();
  const leave = attachments.addHandler(({ kind, object: { metadata, status } }) => {
    const name = metadata.name ?? "";
    if (kind !== "deleted" && status?.attached && !attachedAtMs.has(name))
      attachedAtMs.set(name, performance.now());
  });
  await cycleOne({ api, attachments });
  attachedAtMs.clear();
  const sentBefore = await requestsSent(api, ATTACHERS_OWN);
  const before = await usageOf(asContestant(attacher));
  const createdAtMs = new Map<string, number>();
  const startedAtMs = performance.now();
  await inParallel(count, IN_FLIGHT, async (index) => {
    const name = `attacher-${index}`;
    await api.send("POST", ATTACHMENTS, attachment(name, index));
    createdAtMs.set(name, performance.now());
  });
  await until("all attached", WAIT_MS_MAX, async () => attachedAtMs.size >= count);
  const attachMs = performance.now() - startedAtMs;
  const detachFromMs = performance.now();
  await inParallel(count, IN_FLIGHT, (index) => api.send("DELETE", `${ATTACHMENTS}/attacher-${index}`));
  await until("all detached", WAIT_MS_MAX, async () => attachments.size === 0);
  const detachMs = performance.now() - detachFromMs;
  const after = await usageOf(asContestant(attacher));
  leave();
  return {
    attachPerSecond: (count / attachMs) * 1_000,
    detachPerSecond: (count / detachMs) * 1_000,
    attach: percentilesOf(
      [...createdAtMs].map(([name, atMs]) => Math.max(0, (attachedAtMs.get(name) ?? NaN) - atMs)),
    ),
    requestsEach: ((await requestsSent(api, ATTACHERS_OWN)) - sentBefore) / count,
    cpuMs: after.cpuMs - before.cpuMs,
    rssBytes: after.rssBytes,
  };
}

/** What an attacher costs that has nothing to do. */
export interface AttacherRest {
  readonly idleCpuPercent: number;
  readonly rssBytes: number;
}

/** What follows a start, a look at every attachment for one, is not rest. */
const SETTLE_MS = 5_000;

export async function measureRest(
  load: AttacherLoad,
  attacher: Program,
  idleMs: number,
): Promise<AttacherRest> {
  await cycleOne(load);
  await sleep(Math.min(SETTLE_MS, idleMs));
  const before = await usageOf(asContestant(attacher));
  await sleep(idleMs);
  const after = await usageOf(asContestant(attacher));
  return { idleCpuPercent: ((after.cpuMs - before.cpuMs) / idleMs) * 100, rssBytes: after.rssBytes };
}

/** So many attached in the end, by whoever is at work; they stay. */
export async function attachMore({ api, attachments }: AttacherLoad, count: number): Promise<void> {
  const from = attachments.size;
  await inParallel(count - from, IN_FLIGHT, (index) =>
    api.send("POST", ATTACHMENTS, attachment(`attacher-${from + index}`, from + index)),
  );
  await until(
    `${count} attached`,
    WAIT_MS_MAX,
    async () => [...attachments.objects()].filter(({ status }) => status?.attached).length === count,
  );
}

/** One before, so that the attacher is at work for certain. */
async function cycleOne({ api, attachments }: AttacherLoad): Promise<void> {
  await api.send("POST", ATTACHMENTS, attachment(WARM_UP, 0));
  await until(
    "the attacher at work",
    WAIT_MS_MAX,
    async () => attachments.get(WARM_UP)?.status?.attached === true,
  );
  await api.send("DELETE", `${ATTACHMENTS}/${WARM_UP}`);
  await until("the first one gone", WAIT_MS_MAX, async () => attachments.get(WARM_UP) === undefined);
}

function attachment(name: string, index: number): object {
  const source = { persistentVolumeName: `attacher-${index}` };
  return {
    metadata: { name },
    spec: { attacher: INSTANT_DRIVER, nodeName: `attacher-${index % NODES}`, source },
  };
}

function asContestant({ pid }: Program) {
  return { pid, requests: async () => undefined, end: async () => undefined };
}
