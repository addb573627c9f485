import { inParallel } from "../../bench/attach-detach/api.ts";
import { createEstate, createPod, deletePod, type Estate } from "../../bench/attach-detach/estate.ts";
import { volumeAttachments } from "../../src/kube/api/volume-attachment.ts";
import { startController } from "../harness/cast.ts";
import { startControlPlane } from "../harness/control-plane.ts";
import { attachAtOnce, attachmentsOf, builderOf, untilAttached } from "../harness/fleet.ts";
import type { Performance } from "./suite.ts";

const FLEET: Estate = { name: "fleet", nodes: 20, volumes: 200 };
const IN_FLIGHT = 8;
/** Far above: all six take 30 s on a machine at rest, and 172 s where 25 processes want its two cores. */
const SETTLE_MS_MAX = 300_000;

/** Who is killed while pods come and go, and how. */
const BLOWS = [
  ["kube-apiserver", "SIGKILL"],
  ["etcd", "SIGKILL"],
  ["kube-apiserver", "SIGTERM"],
] as const;

/** Our controller on a control plane that keeps dying: in the end exactly what pods want is attached. */
export async function restarts({ stage, binaries }: Performance): Promise<string> {
  const plane = await startControlPlane(stage, binaries);
  try {
    const attachments = await plane.api.follow(volumeAttachments);
    attachAtOnce(plane.api, attachments);
    const controller = startController(stage, plane.kubeconfig);
    const builder = builderOf(plane.api);
    await createEstate(builder, FLEET);
    const startedAtMs = performance.now();
    for (const [program, signal] of BLOWS) {
      await Promise.all([
        inParallel(FLEET.volumes, IN_FLIGHT, (index) => createPod(builder, FLEET, index)),
        plane.restart(program, signal),
      ]);
      await untilAttached(stage, attachments, {
        estate: FLEET,
        count: FLEET.volumes,
        withinMs: SETTLE_MS_MAX,
      });
      const twice = attachmentsOf(attachments, FLEET).length - FLEET.volumes;
      if (twice !== 0) throw new Error(`${twice} attachments too many after ${signal} of ${program}`);
      await Promise.all([
        inParallel(FLEET.volumes, IN_FLIGHT, (index) => deletePod(builder, FLEET, index)),
        plane.restart(program, signal),
      ]);
      await untilAttached(stage, attachments, { estate: FLEET, count: 0, withinMs: SETTLE_MS_MAX });
    }
    if (!controller.alive)
      throw new Error(`the controller did not live through it: ${await stage.obituary()}`);
    const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(0);
    return `${BLOWS.length * 2} blows, ${FLEET.volumes * BLOWS.length} attaches and detaches in ${seconds} s`;
  } finally {
    await plane.close();
  }
}
