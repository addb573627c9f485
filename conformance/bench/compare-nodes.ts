import { turnsOf, type Who } from "../../bench/attach-detach/turns.ts";
import { needCast, playOn, type Cast } from "../harness/cast.ts";
import { openStage } from "../harness/stage.ts";
import { measureNode, type NodeSide } from "./node-load.ts";
import type { Comparison, CompareTask } from "./peer-report.ts";
import { figureOf, measureInTurns, type FigureOf } from "./rounds.ts";

const ROUNDS = 2;
const PODS = { full: 4, tiny: 1 };

/** The driver is the same on both sides, and so is what provisions and binds. */
const AROUND = { apiserver: "real", driver: "host-path", scheduler: "absent" } as const;
const OURS: Cast = { ...AROUND, controller: "ours", attacher: "ours", node: "ours" };
const REAL: Cast = { ...AROUND, controller: "real", attacher: "real", node: "kubelet" };

const CONTESTS: readonly { readonly title: string; readonly casts: Readonly<Record<Who, Cast>> }[] = [
  {
    title:
      "one pod: mooring controller, attacher and node; kube-controller-manager, csi-attacher and kubelet",
    casts: { ours: OURS, peer: REAL },
  },
  {
    title: "one pod: mooring node; kubelet; both with mooring controller and attacher",
    casts: { ours: OURS, peer: { ...OURS, node: "kubelet" } },
  },
];

/** The same pod on a node of ours and on one with a real kubelet. */
export async function compareNodes(task: CompareTask): Promise<Comparison[]> {
  const { binaries, tiny } = task;
  for (const { casts } of CONTESTS) for (const cast of Object.values(casts)) await needCast(binaries, cast);
  const compared: Comparison[] = [];
  let turn = 0;
  for (const { title, casts } of CONTESTS) {
    const turns = turnsOf(["ours", "peer"], tiny ? 1 : ROUNDS);
    const sides = await measureInTurns(turns, (who) =>
      measureTurn(task, { cast: casts[who], node: `node-${turn++}` }),
    );
    compared.push({ title, figures: FIGURES.map((figure) => figureOf(sides, figure)) });
  }
  return compared;
}

/** Everything but the server begins anew: programs, directory, and the node's name. */
async function measureTurn(
  { plane, binaries, tiny }: CompareTask,
  { cast, node }: { readonly cast: Cast; readonly node: string },
): Promise<NodeSide> {
  const stage = await openStage(node);
  try {
    return await playOn(stage, { binaries, cast, server: plane, node }, (scene) =>
      measureNode(scene, tiny ? PODS.tiny : PODS.full),
    );
  } finally {
    await stage.close();
  }
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

const FIGURES: readonly FigureOf<NodeSide>[] = [
  ["pod to published, median ms", "less", ({ publishedMs }) => median(publishedMs)],
  ["pod to published, slowest ms", "less", ({ publishedMs }) => Math.max(...publishedMs)],
  ["pod deleted to detached, median ms", "less", ({ detachedMs }) => median(detachedMs)],
  ["pod deleted to detached, slowest ms", "less", ({ detachedMs }) => Math.max(...detachedMs)],
];
