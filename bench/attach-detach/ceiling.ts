import { inParallel, type Api } from "./api.ts";
import {
  ATTACHMENTS,
  BENCH_DRIVER,
  createPod,
  deletePod,
  nodeNameOf,
  volumeOf,
  type Estate,
} from "./estate.ts";

/** What the API server can do at all: the requests of a burst, sent with nobody deciding anything. */
export interface CeilingResult {
  /** From the first pod until the last node lists its volumes. */
  readonly ms: number;
  readonly perSecond: number;
}

/** Chains under way; more made it no faster on two cores. */
const IN_FLIGHT = 64;

/**
 * Pod, VolumeAttachment and the driver's "attached" for each volume, in this order, and in the end one write for each
 * node: fewer requests than any controller gets by with. Watches, decisions and the waits between them are left out, so a
 * controller that shares the processors with the server stays below this.
 */
export async function measureCeiling(
  api: Api,
  { estate, count }: { readonly estate: Estate; readonly count: number },
): Promise<CeilingResult> {
  const startedAtMs = performance.now();
  await inParallel(count, IN_FLIGHT, (index) => attachBare(api, estate, index));
  await inParallel(estate.nodes, IN_FLIGHT, (node) => listAll(api, estate, { node, count }));
  const ms = performance.now() - startedAtMs;
  await inParallel(count, IN_FLIGHT, async (index) => {
    await deletePod(api, estate, index);
    await api.send("DELETE", attachmentPath(estate, index));
  });
  await inParallel(estate.nodes, IN_FLIGHT, (node) => listAll(api, estate, { node, count: 0 }));
  return { ms, perSecond: (count / ms) * 1_000 };
}

async function attachBare(api: Api, estate: Estate, index: number): Promise<void> {
  await createPod(api, estate, index);
  await api.send("POST", ATTACHMENTS, {
    metadata: { name: volumeOf(estate, index) },
    spec: {
      attacher: BENCH_DRIVER,
      nodeName: nodeNameOf(estate, index),
      source: { persistentVolumeName: volumeOf(estate, index) },
    },
  });
  await api.send("PATCH", `${attachmentPath(estate, index)}/status`, { status: { attached: true } });
}

async function listAll(
  api: Api,
  estate: Estate,
  { node, count }: { readonly node: number; readonly count: number },
): Promise<void> {
  const volumesAttached: { name: string; devicePath: string }[] = [];
  for (let index = node; index < count; index += estate.nodes)
    volumesAttached.push({
      name: `kubernetes.io/csi/${BENCH_DRIVER}^${volumeOf(estate, index)}`,
      devicePath: "",
    });
  const list = volumesAttached.length === 0 ? null : volumesAttached;
  await api.send("PATCH", `/api/v1/nodes/${nodeNameOf(estate, node)}/status`, {
    status: { volumesAttached: list },
  });
}

function attachmentPath(estate: Estate, index: number): string {
  return `${ATTACHMENTS}/${volumeOf(estate, index)}`;
}
