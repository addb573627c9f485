import { measureCluster, type ClusterLoad, type Side } from "../../bench/attach-detach/cluster.ts";
import type { Comparison, CompareTask } from "./peer-report.ts";
import { requestsSent } from "./requests.ts";
import { figureOf, type FigureOf } from "./rounds.ts";

/** Two rounds of each: ours, peer, peer, ours. The last load is the largest, and stays on the server. */
const ROUNDS = 2;
const FULL: readonly ClusterLoad[] = [
  { pods: 500, nodes: 100, perSecond: 25, idleMs: 10_000 },
  { pods: 500, nodes: 100, idleMs: 20_000 },
  { pods: 5_000, nodes: 500, idleMs: 30_000 },
  { pods: 20_000, nodes: 1_000, idleMs: 30_000 },
];
const TINY: readonly ClusterLoad[] = [{ pods: 20, nodes: 5, idleMs: 1_000 }];

/** The loads of `npm run bench -- attach-detach`, and one of 20,000 volumes. */
export async function compareControllers({ plane, binaries, tiny }: CompareTask): Promise<Comparison[]> {
  const programs = await binaries.need("kube-controller-manager");
  const found = await measureCluster({
    loads: tiny ? TINY : FULL,
    kubeconfig: plane.kubeconfig,
    peer: programs["kube-controller-manager"],
    rounds: ROUNDS,
    ceiling: false,
    serverIsDisposable: true,
    requestsServed: () => requestsSent(plane.api, CONTROLLERS_OWN),
  });
  return found.map(({ load, ...sides }) => ({
    title: titleOf(load),
    figures: (load.perSecond === undefined ? FIGURES : FIGURES.filter(([name]) => !name.endsWith("/s"))).map(
      (figure) => figureOf(sides, figure),
    ),
  }));
}

/** Where the load sets the pace, how many a second there were says nothing of the controller. */
function titleOf({ pods, nodes, perSecond }: ClusterLoad): string {
  const rate = perSecond === undefined ? "at once" : `at ${perSecond}/s`;
  return `controller: ${pods.toLocaleString("en")} pods ${rate}, ${nodes.toLocaleString("en")} nodes`;
}

const FIGURES: readonly FigureOf<Side>[] = [
  ["attaches/s", "more", ({ attach }) => attach.perSecond],
  ["detaches/s", "more", ({ detach }) => detach.perSecond],
  ["pod to VolumeAttachment p50 ms", "less", ({ attach }) => attach.podToAttachment.p50Ms],
  ["pod to VolumeAttachment p99 ms", "less", ({ attach }) => attach.podToAttachment.p99Ms],
  ["attached to node status p50 ms", "less", ({ attach }) => attach.attachedToNode.p50Ms],
  ["attached to node status p99 ms", "less", ({ attach }) => attach.attachedToNode.p99Ms],
  ["API requests a volume", "less", ({ requestsEach }) => requestsEach ?? NaN],
  ["CPU s, attach", "less", ({ attachCpuMs }) => attachCpuMs / 1_000],
  ["CPU s, detach", "less", ({ detachCpuMs }) => detachCpuMs / 1_000],
  ["CPU at rest, % of a core", "less", ({ idleCpuPercent }) => idleCpuPercent],
  ["RSS MiB", "less", ({ rssBytes }) => rssBytes / 2 ** 20],
];

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
