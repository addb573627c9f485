import type { Logger } from "../../base/log.ts";
import type { Node, Pod } from "kubernetes-types/core/v1.js";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { parseStored, type ApiObject } from "../objects.ts";
import type { VerbDeps } from "../request.ts";
import { withCondition } from "../rules/pod-conditions.ts";
import type { StoredObject, StoreKey } from "../store/store.ts";
import { AGAIN, DONE, type EngineController, type Marks } from "./engine-controller.ts";
import {
  hasEnded,
  isOutOfService,
  NODE_GONE,
  planNodePods,
  QUARANTINE_MS,
  surplus,
  TERMINATED_MAX,
} from "./pod-gc-plan.ts";
import type { EndReason } from "./pod-gc-plan.ts";
import { fromText, toText } from "./served.ts";
import { changeSeen, deleteSeen, forAll } from "./writes.ts";

/** Of the one key that stands for all ended pods; no node can have this name. */
const ENDED = "/ended";
/** Upstream looks every 20 s; sorting 12,500 pods for each one that ends would cost more than keeping them. */
const ENDED_PERIOD_MS = 20_000;

/**
 * The pod garbage collector of kube-controller-manager: pods that no node will ever report on are ended, so that what
 * waits for them (their claims, a StatefulSet) goes on. Nothing is concluded about their volumes: those are the
 * business of the attach/detach controller and of the node's own evidence, which a missing pod object is not.
 *
 * Keys are names of nodes. A node's absence is read from the store just before each pod is ended; how long it has been
 * absent is known only to this process, so that a start, and a gap in the events, begins the quarantine anew.
 */
export function createPodGc(
  { log, ...verbs }: VerbDeps & { readonly log: Logger },
  { mark, markAfter }: Marks,
): EngineController {
  const { store, clock } = verbs;
  const pods = new PodsByNode();
  const missingSince = new Map<string, number>();

  function readNode(name: string): Node | undefined {
    const stored = store.get({ resource: "nodes", namespace: "", name });
    return stored === undefined ? undefined : parseStored(stored);
  }

  function quarantine(node: string): void {
    if (missingSince.has(node)) return;
    missingSince.set(node, clock.now());
    markAfter(node, QUARANTINE_MS);
  }

  function observeNode(name: string, node: Node | undefined): void {
    // Whatever was known of its absence ends with its return, be it for a moment.
    missingSince.delete(name);
    if (pods.on(name).size === 0) return;
    if (node === undefined) quarantine(name);
    else if (isOutOfService(node)) mark(name);
  }

  function observePod(key: StoreKey, pod: Pod | undefined): void {
    const left = pods.set(toText(key), pod);
    if (left !== undefined && pods.on(left).size === 0) missingSince.delete(left);
    const node = pod?.spec?.nodeName ?? "";
    if (node !== "" && readNode(node) === undefined) quarantine(node);
    else if (node !== "" && pod?.metadata?.deletionTimestamp !== undefined) mark(node);
    if (pods.ended.size > TERMINATED_MAX) markAfter(ENDED, ENDED_PERIOD_MS);
  }

  /** Shown as failed first, because nobody else will say so, and then deleted in the version that shows it. */
  async function end(key: StoreKey, reason: EndReason, stillApplies: () => boolean): Promise<void> {
    const seen = store.get(key);
    if (seen === undefined || !stillApplies()) return;
    const fail = (object: ApiObject) => failed(object, reason, clock.wall());
    if (!hasEnded(parseStored(seen))) await changeSeen(verbs, seen, fail, { subresource: "status" });
    const shown = store.get(key);
    if (shown === undefined || !isSamePod(seen, shown) || !hasEnded(parseStored(shown))) return;
    if (!stillApplies()) return;
    const { namespace, name } = key;
    if ((await deleteSeen(verbs, shown)) === "written")
      log.info("pod garbage collected", { namespace, name, reason });
  }

  async function reconcileNode(name: string): Promise<Outcome> {
    if (readNode(name) === undefined && pods.on(name).size > 0) quarantine(name);
    const planned = () =>
      planNodePods(readNode(name), { missingSinceMs: missingSince.get(name), nowMs: clock.now() });
    const plan = planned();
    if (plan.kind === "wait") return pods.on(name).size === 0 ? DONE : { kind: "after", ms: plan.ms };
    if (plan.kind === "keep") return DONE;
    const { reason, applies } = plan;
    const chosen = () =>
      [...pods.on(name)].map(fromText).filter((key) => {
        const stored = store.get(key);
        return stored !== undefined && applies(parseStored(stored));
      });
    await forAll(chosen(), (key) => end(key, reason, () => planned().kind === "end"));
    return chosen().some((key) => !isHeld(store.get(key))) ? AGAIN : DONE;
  }

  async function reconcileEnded(): Promise<Outcome> {
    const ended = [...pods.ended].flatMap((key) => {
      const stored = store.get(fromText(key));
      return stored === undefined ? [] : [parseStored(stored)];
    });
    const keyOf = ({ metadata = {} }: Pod) => ({
      resource: "pods",
      namespace: metadata.namespace ?? "",
      name: metadata.name ?? "",
    });
    await forAll(surplus(ended), (pod) => end(keyOf(pod), "terminated", () => true));
    return DONE;
  }

  return {
    clear() {
      pods.clear();
      missingSince.clear();
    },

    observe({ type, object }) {
      const { key } = object;
      const now = () => (type === "deleted" ? undefined : parseStored(object));
      if (key.resource === "nodes") observeNode(key.name, now());
      else if (key.resource === "pods") observePod(key, now());
    },

    reconcile: (key) => (key === ENDED ? reconcileEnded() : reconcileNode(key)),
  };
}

function failed(pod: ApiObject, reason: EndReason, now: Date): ApiObject {
  const { generation } = pod.metadata;
  const condition = generation === undefined ? NODE_GONE : { ...NODE_GONE, observedGeneration: generation };
  const shown = reason === "orphaned" ? withCondition(pod, condition, now) : pod;
  return { ...shown, status: { ...(shown["status"] as object | undefined), phase: "Failed" } };
}

function isSamePod(a: StoredObject, b: StoredObject): boolean {
  return parseStored(a).metadata.uid === parseStored(b).metadata.uid;
}

/** Deleted, and kept only by finalizers: it goes with the last of them. */
function isHeld(stored: StoredObject | undefined): boolean {
  if (stored === undefined) return true;
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers = [] } = parseStored(stored).metadata;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && finalizers.length > 0;
}

const NONE: ReadonlySet<string> = new Set();

/** Pods by the node they are bound to, and those that have ended. */
class PodsByNode {
  readonly #nodeOf = new Map<string, string>();
  readonly #pods = new Map<string, Set<string>>();
  readonly ended = new Set<string>();

  clear(): void {
    this.#nodeOf.clear();
    this.#pods.clear();
    this.ended.clear();
  }

  on(node: string): ReadonlySet<string> {
    return this.#pods.get(node) ?? NONE;
  }

  /** Returns the node that the pod is on no more. */
  set(pod: string, state: Pod | undefined): string | undefined {
    if (state !== undefined && hasEnded(state)) this.ended.add(pod);
    else this.ended.delete(pod);
    const [before, now = ""] = [this.#nodeOf.get(pod), state?.spec?.nodeName];
    if (before === now) return undefined;
    if (before !== undefined) this.#leave(before, pod);
    if (now === "") {
      this.#nodeOf.delete(pod);
    } else {
      this.#nodeOf.set(pod, now);
      this.#pods.set(now, (this.#pods.get(now) ?? new Set()).add(pod));
    }
    return before;
  }

  #leave(node: string, pod: string): void {
    const pods = this.#pods.get(node);
    pods?.delete(pod);
    if (pods?.size === 0) this.#pods.delete(node);
  }
}
