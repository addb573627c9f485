import type { Clock } from "../base/clock.ts";
import type { Lease } from "../kube/api/lease.ts";
import { nodes, type Node } from "../kube/api/node.ts";
import { pods } from "../kube/api/pod.ts";
import type { Client } from "../kube/client/client.ts";
import { formatTime } from "../kube/time.ts";
import type { Objects } from "./objects.ts";
import type { Trace } from "./trace.ts";

export interface NodeLifecycleDeps {
  readonly clock: Clock;
  readonly client: Client;
  readonly objects: Objects;
  readonly trace: Trace;
}

/** Of kube-controller-manager. */
const LOOK_MS = 5_000;
const GRACE_MS = 40_000;
const EVICT_MS = 300_000;

/**
 * What kube-controller-manager's node lifecycle controller does, as a model: a node whose lease is not renewed becomes
 * Unknown, and its pods are deleted five minutes later. Whether the machine is off or only cut off nobody can tell.
 */
export class NodeLifecycle {
  readonly #clock: Clock;
  readonly #client: Client;
  readonly #objects: Objects;
  readonly #trace: Trace;
  readonly #silentSince = new Map<string, number>();
  readonly #evicted = new Set<string>();
  /** The last renewal of each, and when it was noticed. */
  readonly #seen = new Map<string, { readonly value: string; readonly atMs: number }>();

  constructor({ clock, client, objects, trace }: NodeLifecycleDeps) {
    this.#objects = objects;
    this.#clock = clock;
    this.#client = client;
    this.#trace = trace;
  }

  start(): void {
    this.#clock.after(LOOK_MS, () => {
      void this.#look()
        .catch(() => undefined)
        .then(() => this.start());
    });
  }

  async #look(): Promise<void> {
    for (const node of this.#objects.all("nodes")) await this.#judge(node);
  }

  async #judge(node: Node): Promise<void> {
    const name = node.metadata.name ?? "";
    const lease = this.#objects.get("leases.coordination.k8s.io", name, "kube-node-lease");
    if (this.#unchangedMs(node, lease) < GRACE_MS) {
      this.#silentSince.delete(name);
      this.#evicted.delete(name);
      return;
    }
    if (!this.#silentSince.has(name)) this.#silentSince.set(name, this.#clock.now());
    const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
    if (ready?.status !== "Unknown") await this.#sayUnknown(name);
    const silentMs = this.#clock.now() - (this.#silentSince.get(name) ?? 0);
    if (silentMs >= EVICT_MS && !this.#evicted.has(name)) await this.#evict(name);
  }

  /** By our own clock, as kube-controller-manager does: that of the node may be wrong. */
  #unchangedMs({ metadata: { name = "", uid } }: Node, lease: Lease | undefined): number {
    const now = this.#clock.now();
    const value = `${uid} ${lease?.spec?.renewTime}`;
    const seen = this.#seen.get(name);
    if (seen?.value === value) return now - seen.atMs;
    this.#seen.set(name, { value, atMs: now });
    return 0;
  }

  async #sayUnknown(name: string): Promise<void> {
    const at = formatTime(this.#clock.wall());
    const condition = {
      type: "Ready",
      status: "Unknown",
      reason: "NodeStatusUnknown",
      lastTransitionTime: at,
    };
    const value = { status: { conditions: [condition] } };
    await this.#client.patch(nodes, { name }, { type: "strategic", value }, { subresource: "status" });
    this.#trace.add("lifecycle", `${name} is not heard of: Unknown`, { to: name });
  }

  async #evict(name: string): Promise<void> {
    this.#evicted.add(name);
    const items = this.#objects.all("pods").filter(({ spec }) => spec?.nodeName === name);
    this.#trace.add("lifecycle", `evicts ${items.length} pods from ${name}`, { to: name });
    for (const { metadata } of items)
      await this.#client
        .delete(pods, { namespace: metadata.namespace ?? "", name: metadata.name ?? "" })
        .catch(() => undefined);
  }
}
