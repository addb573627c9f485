import { backoffMs } from "../../base/backoff.ts";
import { mark, type Context } from "../context.ts";
import type { HostProcess } from "../host-processes.ts";
import type { VolumeState } from "../world.ts";
import { holderOf, type Holder, type Question } from "./holders.ts";
import { questionOf, questionOfPod } from "./questions.ts";

/**
 * Evidence that nobody has a volume any more, without which none is let go. That a pod is gone from the API proves
 * nothing: one deleted by force may run on, and whoever writes to its volume then would be the second writer once the
 * volume is attached elsewhere.
 *
 * Whoever asks gets an answer from a look that began after it asked. All who ask while a look is under way share the
 * next one: 110 pods with four volumes each that go at once cost two or three looks, not 440. Where somebody has it, or
 * nobody could tell, it is asked again after a while.
 *
 * Bound: one look under way, and one finding for each volume and pod that wants to go.
 */
export interface Evidence {
  /** One look of the plan at a volume; `end` forgets what the plan had no use for. */
  lookAt(volume: VolumeState): EvidenceLook;
  ask(volume: VolumeState, podUid: string): void;
  /** Of a directory of a pod that is gone; undefined where nobody has any of it. */
  holderOfPod(podUid: string): Promise<string | undefined>;
}

export interface EvidenceLook {
  /** `podUid` of "" for the volume itself. Undefined: not asked for yet. */
  finding(podUid: string): Finding | undefined;
  end(): void;
}

export type Finding =
  /** Asked for and not answered yet; `before` is what the last answer was. */
  { readonly kind: "asked"; readonly before: Held | undefined } | { readonly kind: "free" } | Held;

interface Held {
  readonly kind: "held";
  readonly message: string;
  /** The process, or what could not be looked at. */
  readonly by: string;
  readonly untilMs: number;
  readonly times: number;
}

/** 1, 2, 4, 8, then every 15 s: a container that is being ended goes within its grace period, seldom within a second. */
const AGAIN = { initialMs: 1_000, maxMs: 15_000 } as const;

interface Asked {
  readonly build: (table: Awaited<ReturnType<Context["host"]["mounts"]["table"]>>) => Promise<Question>;
  readonly answer: (outcome: Outcome) => void;
}

type Outcome =
  | { readonly kind: "free" }
  | { readonly kind: "held"; readonly holder: Holder }
  | { readonly kind: "unsure"; readonly why: string };

type Deps = Pick<Context, "host" | "paths" | "world" | "clock" | "volumes" | "inUse" | "log">;

export function createEvidence(deps: Deps): Evidence {
  const { clock, log } = deps;
  const findings = new WeakMap<VolumeState, Map<string, Finding>>();
  const round = createRounds(deps);

  const findingsOf = (volume: VolumeState): Map<string, Finding> => {
    const known = findings.get(volume) ?? new Map<string, Finding>();
    findings.set(volume, known);
    return known;
  };

  function ask(volume: VolumeState, podUid: string): void {
    const known = findingsOf(volume);
    const earlier = known.get(podUid);
    const before = earlier?.kind === "held" ? earlier : undefined;
    const asked: Finding = { kind: "asked", before };
    known.set(podUid, asked);
    round({
      build: (table) => questionOf(deps, { volume, podUid, table }),
      answer(outcome) {
        // Wanted again meanwhile, or gone: the answer is to a question that nobody has any more.
        if (known.get(podUid) !== asked) return;
        const finding =
          outcome.kind === "free"
            ? outcome
            : toHeld(outcome, { whose: whoseOf(deps, volume, podUid), before, nowMs: clock.now() });
        // Once for each process, however often it is looked at.
        if (finding.kind === "held" && finding.by !== before?.by)
          log.warn("volume is not let go", { volume: volume.name, podUid, why: finding.message });
        known.set(podUid, finding);
        mark(deps, volume);
      },
    });
  }

  return {
    lookAt(volume) {
      const used = new Set<string>();
      return {
        finding(podUid) {
          used.add(podUid);
          return findings.get(volume)?.get(podUid);
        },
        end() {
          for (const [podUid, { kind }] of findings.get(volume) ?? [])
            if (kind === "free" || !used.has(podUid)) findings.get(volume)?.delete(podUid);
        },
      };
    },
    ask,
    holderOfPod: (podUid) =>
      new Promise((resolve) =>
        round({
          build: async (table) => questionOfPod(deps, podUid, table),
          answer(outcome) {
            if (outcome.kind === "held") resolve(describe(outcome.holder));
            else resolve(outcome.kind === "free" ? undefined : outcome.why);
          },
        }),
      ),
  };
}

/** Looks at the machine, one after the other, each for all who asked before it began. */
function createRounds({ host, log }: Deps): (asked: Asked) => void {
  let waiting: Asked[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    // What is asked for in one turn goes into one look.
    await Promise.resolve();
    while (waiting.length > 0) {
      const all = waiting;
      waiting = [];
      await look(all).catch((error: unknown) => {
        log.warn("cannot tell who has the volumes of this node", { error });
        for (const { answer } of all) answer({ kind: "unsure", why: messageOf(error) });
      });
    }
    running = false;
  }

  async function look(all: readonly Asked[]): Promise<void> {
    const table = await host.mounts.table();
    const questions: { readonly asked: Asked; readonly question: Question }[] = [];
    await Promise.all(
      all.map(async (asked) => {
        try {
          questions.push({ asked, question: await asked.build(table) });
        } catch (error) {
          asked.answer({ kind: "unsure", why: messageOf(error) });
        }
      }),
    );
    const filesystems = new Set(
      questions.flatMap(({ question }) => question.targets.map(({ deviceNumber }) => deviceNumber)),
    );
    const devices = new Set(questions.flatMap(({ question }) => question.devices));
    const scan = await host.processes.scan({ filesystems: [...filesystems], devices: [...devices] });
    for (const { asked, question } of questions) {
      const holder = holderOf(scan, question);
      asked.answer(holder ? { kind: "held", holder } : { kind: "free" });
    }
  }

  return (asked) => {
    waiting.push(asked);
    if (!running) void run();
  };
}

interface Asking {
  readonly whose: string;
  readonly before: Held | undefined;
  readonly nowMs: number;
}

function toHeld(outcome: Exclude<Outcome, { kind: "free" }>, { whose, before, nowMs }: Asking): Held {
  const times = (before?.times ?? 0) + 1;
  const untilMs = nowMs + backoffMs(times, AGAIN);
  if (outcome.kind === "unsure")
    return {
      kind: "held",
      by: "",
      untilMs,
      times,
      message: `nobody could tell who has ${whose}: ${outcome.why}`,
    };
  const { holder } = outcome;
  const message = `${whose} stays while ${describe(holder)}; it is let go once that process has ended`;
  return { kind: "held", by: nameOf(holder.by), untilMs, times, message };
}

function whoseOf({ world }: Deps, { name }: VolumeState, podUid: string): string {
  return podUid === "" ? name : `${name} of ${world.podName(podUid)}`;
}

function describe({ by, how }: Holder): string {
  return `process ${nameOf(by)} ${how}`;
}

function nameOf({ pid, command }: HostProcess): string {
  return `${pid} (${command})`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
