import type { Container } from "kubernetes-types/core/v1.js";
import type { Pod } from "../../kube/api/pod.ts";
import { parseQuantity } from "../../kube/quantity.ts";
import type { NodeView, Refusal } from "./view.ts";

/** Amounts by resource, in nano-units. */
type Amounts = ReadonlyMap<string, bigint>;

/**
 * Whether what the pod asks for is left on the node. A node that does not state how much processor and memory it has is
 * taken to have enough; any other resource it does not state it does not have.
 */
export function refuseByResources(pod: Pod, { node, pods }: NodeView): readonly Refusal[] {
  const allocatable = amountsOf(node.status?.allocatable);
  const refusals: Refusal[] = [];
  const places = allocatable.get("pods");
  if (places !== undefined && BigInt(pods.length + 1) * UNIT > places) refusals.push(short("Too many pods"));
  for (const [name, wanted] of requestsOf(pod)) {
    if (wanted <= 0n) continue;
    const had = allocatable.get(name);
    if (had === undefined && UNSTATED.has(name)) continue;
    const used = pods.reduce((sum, other) => sum + (requestsOf(other).get(name) ?? 0n), 0n);
    if (used + wanted > (had ?? 0n)) refusals.push(short(`Insufficient ${name}`));
  }
  return refusals;
}

const UNIT = 1_000_000_000n;
const UNSTATED = new Set(["cpu", "memory", "ephemeral-storage"]);

function short(text: string): Refusal {
  return { text, until: ["room", "node"] };
}

/** Pods of the caches never change, so each is added up once. Bound: as long as somebody keeps the pod. */
const known = new WeakMap<Pod, Amounts>();

/**
 * What a pod holds at most: its containers together with the sidecars, or one init container with the sidecars started
 * before it, and the overhead of its runtime class.
 */
function requestsOf(pod: Pod): Amounts {
  const found = known.get(pod);
  if (found) return found;
  const { containers = [], initContainers = [], overhead } = pod.spec ?? {};
  let sidecars: Amounts = NONE;
  let starting: Amounts = NONE;
  for (const container of initContainers) {
    const own = containerRequests(container);
    if (container.restartPolicy === "Always") sidecars = add(sidecars, own);
    starting = larger(starting, container.restartPolicy === "Always" ? sidecars : add(sidecars, own));
  }
  const running = containers.map(containerRequests).reduce(add, sidecars);
  const total = add(larger(running, starting), amountsOf(overhead));
  known.set(pod, total);
  return total;
}

const NONE: Amounts = new Map();

/** A limit without a request is a request, as the server writes it down; ours may not have been asked. */
function containerRequests({ resources }: Container): Amounts {
  return amountsOf({ ...resources?.limits, ...resources?.requests });
}

function amountsOf(list: Readonly<Record<string, unknown>> | undefined): Amounts {
  const amounts = new Map<string, bigint>();
  for (const [name, text] of Object.entries(list ?? {})) amounts.set(name, nanosOf(text));
  return amounts;
}

/** What cannot be read is nothing: the server has checked it, and one bad object must not stop the rest. */
function nanosOf(text: unknown): bigint {
  try {
    return parseQuantity(text as string).nanos;
  } catch {
    return 0n;
  }
}

function add(a: Amounts, b: Amounts): Amounts {
  return combine(a, b, (x, y) => x + y);
}

function larger(a: Amounts, b: Amounts): Amounts {
  return combine(a, b, (x, y) => (x > y ? x : y));
}

function combine(a: Amounts, b: Amounts, merge: (x: bigint, y: bigint) => bigint): Amounts {
  const merged = new Map(a);
  for (const [name, amount] of b) merged.set(name, merge(merged.get(name) ?? 0n, amount));
  return merged;
}
