import { inParallel } from "../../bench/attach-detach/api.ts";
import { usageOf } from "../../bench/attach-detach/contestants.ts";
import { createPod, deletePod, type Estate } from "../../bench/attach-detach/estate.ts";
import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import type { Informer } from "../../src/kube/informer/informer.ts";
import type { Api } from "../harness/api.ts";
import { builderOf, untilAttached } from "../harness/fleet.ts";
import type { Program, Stage } from "../harness/stage.ts";
import { requestsSent } from "./requests.ts";

/** What one attach/detach controller costs once so many volumes are attached, and what it sent for each of them. */
export interface ControllerSide {
  readonly attachPerSecond: number;
  readonly detachPerSecond: number;
  readonly idleCpuPercent: number;
  readonly requestsEach: number;
  readonly rssBytes: number;
}

export interface ControllerLoad {
  readonly api: Api;
  readonly attachments: Informer<VolumeAttachment>;
  readonly estate: Estate;
  /** With everything attached and nothing to do. */
  readonly idleMs: number;
}

const IN_FLIGHT = 32;
const WAIT_MS_MAX = 1_200_000;
/** Events and node statuses that follow an attach are not rest. */
const SETTLE_MS_MAX = 10_000;

export async function measureController(
  stage: Stage,
  { api, attachments, estate, idleMs }: ControllerLoad,
  controller: Program,
): Promise<ControllerSide> {
  const builder = builderOf(api);
  const count = estate.volumes;
  const usage = () =>
    usageOf({ pid: controller.pid, requests: async () => undefined, end: async () => undefined });
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const sentBefore = await requestsSent(api, CONTROLLERS_OWN);
  const startedAtMs = performance.now();
  await inParallel(count, IN_FLIGHT, (index) => createPod(builder, estate, index));
  await untilAttached(stage, attachments, { estate, count, withinMs: WAIT_MS_MAX });
  const attachMs = performance.now() - startedAtMs;
  await pause(Math.min(SETTLE_MS_MAX, idleMs));
  const rest = await usage();
  await pause(idleMs);
  const rested = await usage();
  const detachFromMs = performance.now();
  await inParallel(count, IN_FLIGHT, (index) => deletePod(builder, estate, index));
  await untilAttached(stage, attachments, { estate, count: 0, withinMs: WAIT_MS_MAX });
  const detachMs = performance.now() - detachFromMs;
  return {
    attachPerSecond: (count / attachMs) * 1_000,
    detachPerSecond: (count / detachMs) * 1_000,
    idleCpuPercent: ((rested.cpuMs - rest.cpuMs) / idleMs) * 100,
    requestsEach: ((await requestsSent(api, CONTROLLERS_OWN)) - sentBefore) / count,
    rssBytes: rested.rssBytes,
  };
}

/** The load itself sends pods and the status of attachments; what is left of these was sent by the controller. */
const CONTROLLERS_OWN = [
  "POST volumeattachments",
  "DELETE volumeattachments",
  "GET volumeattachments",
  "PATCH nodes/status",
  "PUT nodes/status",
  "GET nodes",
  "GET pods",
  "GET persistentvolumeclaims",
  "GET persistentvolumes",
];
