import { turnsOf, type Who } from "../../bench/attach-detach/turns.ts";
import { volumeAttachments } from "../../src/kube/api/volume-attachment.ts";
import { startMooring } from "../harness/mooring.ts";
import type { Program } from "../harness/stage.ts";
import { attachMore, measureAttacher, measureRest, prepareAttacherLoad } from "./attacher-load.ts";
import type { AttacherLoad, AttacherRest, AttacherSide } from "./attacher-load.ts";
import { createInstantDriver } from "./instant-driver.ts";
import type { Comparison, CompareTask } from "./peer-report.ts";
import { figureOf, measureInTurns, type FigureOf } from "./rounds.ts";

interface Sizes {
  readonly atOnce: number;
  /** Attached already, and nothing to do. */
  readonly atRest: readonly number[];
  readonly idleMs: number;
}

const FULL: Sizes = { atOnce: 1_000, atRest: [5_000, 20_000], idleMs: 20_000 };
const TINY: Sizes = { atOnce: 100, atRest: [150], idleMs: 1_000 };
/** The first round is for server and driver to get warm, and does not count. */
const ROUNDS = 3;

export async function compareAttachers({ stage, plane, binaries, tiny }: CompareTask): Promise<Comparison[]> {
  const programs = await binaries.need("csi-attacher");
  const { atOnce, atRest, idleMs } = tiny ? TINY : FULL;
  const socket = stage.path("instant.sock");
  const driver = createInstantDriver(socket);
  await driver.start();
  try {
    const load = { api: plane.api, attachments: await plane.api.follow(volumeAttachments) };
    const flags = [`--csi-address=${socket}`, `--kubeconfig=${plane.kubeconfig}`, "--worker-threads=100"];
    const unlimited = ["--kube-api-qps=5000", "--kube-api-burst=5000"];
    const start = {
      ours: () => startMooring(stage, "attacher", flags),
      peer: () => stage.start("csi-attacher", programs["csi-attacher"] ?? "", [...flags, ...unlimited]),
    };
    const during = async <T>(who: Who, work: (program: Program) => Promise<T>) => {
      const program = start[who]();
      return work(program).finally(() => program.end());
    };
    await prepareAttacherLoad(plane.api, Math.max(atOnce, ...atRest));
    const compared = [await compareAtOnce(load, during, atOnce)];
    for (const count of atRest) {
      await during("ours", () => attachMore(load, count));
      compared.push(await compareAtRest(load, during, { count, idleMs }));
    }
    return compared;
  } finally {
    await driver.stop({ graceMs: 1_000 });
  }
}

/** Starts one of them, and ends it whatever comes of the work. */
type During = <T>(who: Who, work: (program: Program) => Promise<T>) => Promise<T>;

async function compareAtOnce(load: AttacherLoad, during: During, count: number): Promise<Comparison> {
  const sides = await measureInTurns(turnsOf(["ours", "peer"], ROUNDS), (who) =>
    during(who, (program) => measureAttacher(load, program, count)),
  );
  const counted = { ours: sides.ours.slice(1), peer: sides.peer.slice(1) };
  const figures = AT_ONCE.map((figure) => figureOf(counted, figure));
  return { title: `attacher: ${count.toLocaleString("en")} VolumeAttachments at once, 100 workers`, figures };
}

async function compareAtRest(
  load: AttacherLoad,
  during: During,
  { count, idleMs }: { readonly count: number; readonly idleMs: number },
): Promise<Comparison> {
  const sides = await measureInTurns(turnsOf(["ours", "peer"], 2), (who) =>
    during(who, (program) => measureRest(load, program, idleMs)),
  );
  const figures = AT_REST.map((figure) => figureOf(sides, figure));
  return { title: `attacher: at rest with ${count.toLocaleString("en")} volumes attached`, figures };
}

const AT_ONCE: readonly FigureOf<AttacherSide>[] = [
  ["attaches/s", "more", ({ attachPerSecond }) => attachPerSecond],
  ["detaches/s", "more", ({ detachPerSecond }) => detachPerSecond],
  ["attach p50 ms", "less", ({ attach }) => attach.p50Ms],
  ["attach p99 ms", "less", ({ attach }) => attach.p99Ms],
  ["API requests a volume", "less", ({ requestsEach }) => requestsEach],
  ["CPU s", "less", ({ cpuMs }) => cpuMs / 1_000],
  ["RSS MiB", "less", ({ rssBytes }) => rssBytes / 2 ** 20],
];

const AT_REST: readonly FigureOf<AttacherRest>[] = [
  ["CPU at rest, % of a core", "less", ({ idleCpuPercent }) => idleCpuPercent],
  ["RSS MiB", "less", ({ rssBytes }) => rssBytes / 2 ** 20],
];
