import { backoffMs, jittered } from "../../base/backoff.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { CSINode } from "../../kube/api/csi-node.ts";
import type { Node } from "../../kube/api/node.ts";
import type { CsiNodeWriter } from "./csi-node-writer.ts";
import { isDamaged, labelCollisions, nodePatchToRestore, type DriverOnNode } from "./csi-node.ts";

/**
 * What the cluster is told of this node's drivers is a projection of what they said: whoever deletes the Node, its CSINode
 * or anything in them finds it again as soon as the watch says so. A Node that is made again under its name gets a CSINode
 * of its own, its node ids and topology labels, without a restart of the agent or of any driver.
 *
 * Another writer that insists is not fought with: the first change is mended at once, the next after 1, 2, 4, ... s up to
 * five minutes, and one that has kept still for ten is forgiven. A label with another value is left to whoever wrote it.
 */
export interface Projection {
  /** The Node, the CSINode or a driver changed. */
  changed(): void;
  run(signal: AbortSignal): Promise<void>;
}

/** The newest of each, by watch. */
export interface SeenByWatch {
  /** Undefined: there is no Node, or none was read yet; nothing is written then. */
  node(): Node | undefined;
  csiNode(): CSINode | undefined;
  /** False where CSINode is not watched: a kubelet's own rights let it read that object and not watch it. */
  csiNodeIsWatched(): boolean;
  /** Called for every change of either; answers how to leave. */
  listen(onChange: () => void): () => void;
}

interface ProjectionDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly csiNode: Pick<CsiNodeWriter, "restore">;
  readonly seen: SeenByWatch;
  readonly told: () => readonly DriverOnNode[];
}

/** What one cause changes in several steps is one repair: a Node that is deleted takes its CSINode along. */
const COALESCE_MS = 100;
const CONTEST = { initialMs: 1_000, maxMs: 300_000 } as const;
const FORGIVEN_MS = 600_000;
/** Where CSINode is not watched it is read this often: 5,000 nodes make 83 requests a second, a quarter of their leases'. */
const VERIFY_MS = 60_000;
const VERIFY_JITTER = 0.5;

export function createProjection({ clock, random, log, csiNode, seen, told }: ProjectionDeps): Projection {
  /** Attempts since the objects were last left alone for long enough. */
  let attempts = 0;
  let attemptedAtMs = -Infinity;
  let due: Timer | undefined;
  let running = false;
  let collisions = "";
  /** Of the Node that a repair has seen last; where CSINode is not watched, another one's has to be made. */
  let repairedUid: string | undefined;
  let stopping: AbortSignal | undefined;

  function isDue(node: Node): boolean {
    if (seen.csiNodeIsWatched()) return isDamaged(node, seen.csiNode(), told());
    return node.metadata.uid !== repairedUid || nodePatchToRestore(node, told()) !== undefined;
  }

  function changed(): void {
    const node = seen.node();
    if (node === undefined || stopping === undefined || stopping.aborted) return;
    warnOfLabels(node);
    if (running || due !== undefined || !isDue(node)) return;
    due = clock.after(delayMs(), () => {
      due = undefined;
      // Our own write may have come back by the watch meanwhile, or the Node may be gone.
      const now = seen.node();
      if (now !== undefined && isDue(now)) void repair(now);
    });
  }

  function delayMs(): number {
    if (clock.now() - attemptedAtMs > FORGIVEN_MS) attempts = 0;
    if (attempts === 0) return COALESCE_MS;
    return Math.max(COALESCE_MS, attemptedAtMs + backoffMs(attempts, CONTEST) - clock.now());
  }

  async function repair(node: Node): Promise<void> {
    if (running || stopping === undefined || stopping.aborted) return;
    running = true;
    let isContested = true;
    try {
      const writes = await csiNode.restore(told, stopping);
      repairedUid = node.metadata.uid;
      isContested = writes > 0;
      if (writes > 0)
        log.warn("what CSINode and Node say of this node's drivers was gone or changed; written again", {
          drivers: told().map(({ name }) => name),
          writes,
          attempts: attempts + 1,
        });
    } catch (error) {
      if (!isOver(stopping)) log.warn("CSINode and Node not restored; tried again", { error });
    }
    running = false;
    // A look that found everything in its place is no fight, and must not make the next repair wait.
    if (isContested || isDamagedStill()) {
      attempts++;
      attemptedAtMs = clock.now();
    }
    changed();
  }

  /** By a watch that is behind what was read: looked at again after a pause like any other. */
  function isDamagedStill(): boolean {
    const node = seen.node();
    return node !== undefined && isDue(node);
  }

  /** Once a set of labels, not once a heartbeat of the node. */
  function warnOfLabels(node: Node): void {
    const found = labelCollisions(node, told()).join("; ");
    if (found !== "" && found !== collisions)
      log.warn("a topology label of this node was changed and is left so", { why: found });
    collisions = found;
  }

  return {
    changed,
    async run(signal) {
      stopping = signal;
      repairedUid = seen.node()?.metadata.uid;
      const leave = seen.listen(changed);
      changed();
      while (!isOver(signal)) {
        await clock.sleep(jittered(VERIFY_MS, VERIFY_JITTER, random), signal).catch(() => undefined);
        const node = seen.node();
        if (node === undefined || seen.csiNodeIsWatched() || due !== undefined) continue;
        await repair(node);
      }
      leave();
      due?.cancel();
    },
  };
}

/** Asked again after an await, which the compiler takes for the same answer. */
function isOver(signal: AbortSignal): boolean {
  return signal.aborted;
}
