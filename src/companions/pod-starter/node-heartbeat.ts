import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { leases, type Lease } from "../../kube/api/lease.ts";
import { nodes, type Node } from "../../kube/api/node.ts";
import type { Client } from "../../kube/client/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import {
  isToldWrong,
  nodeLease,
  nodeMetadata,
  nodeStatus,
  readinessOf,
  readyCondition,
  type NodeFacts,
  type Readiness,
} from "./node-object.ts";

/** Registers a node and keeps telling that it is there, as a kubelet does. */
export interface NodeHeartbeat {
  /**
   * Beats until the signal aborts, then says that the node has stopped. The Node object stays: its volumes may still be
   * attached, and who deletes it decides that they are not.
   */
  run(signal: AbortSignal): Promise<void>;
  /** The node is registered and ready: pods may be given to it. */
  registered(): boolean;
}

export interface NodeHeartbeatDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * What the node has in use, so that a Node registers with it, as a kubelet's does: an empty list would call a volume
   * unmounted that a pod runs on. Undefined while nobody knows. Then it registers without, says so, and does not wait: the volume
   * manager takes stock from the Node object, among others, so it would wait for the manager and the manager for it. The
   * attach/detach controller presumes what is older than the Node in use until the manager has written its list.
   */
  readonly volumesInUse: () => readonly string[] | undefined;
}

export interface NodeHeartbeatOptions extends Omit<NodeFacts, "hostIP"> {
  readonly hostIP?: string;
}

/** A kubelet renews its lease every 10 s, and repeats a status that has not changed every 5 minutes. */
const BEAT_MS = 10_000;
const STATUS_MS = 300_000;
/** A first beat that fails delays everything else, so it is tried again sooner. */
const REGISTER_RETRY_MS = 500;
/** The last word of a process that is asked to end. */
const FAREWELL_MS = 2_000;

export function createNodeHeartbeat(
  { client, clock, log: parentLog, volumesInUse }: NodeHeartbeatDeps,
  { hostIP = "127.0.0.1", ...rest }: NodeHeartbeatOptions,
): NodeHeartbeat {
  const facts: NodeFacts = { ...rest, hostIP };
  const name = facts.nodeName;
  const log = parentLog.with({ node: name });
  let registered = false;
  let failing = false;
  let statusDueMs = -Infinity;

  async function beat(signal: AbortSignal): Promise<void> {
    const node = await ensureNode(signal);
    const readiness = readinessOf(node, volumesInUse() !== undefined);
    if (clock.now() >= statusDueMs || isToldWrong(node, facts, readiness)) {
      await tell(node, readiness, { signal });
      statusDueMs = clock.now() + STATUS_MS;
    }
    await renew(nodeLease(node, clock.wall()), signal);
    if (registered) return;
    registered = true;
    log.info("node registered");
  }

  async function ensureNode(signal: AbortSignal): Promise<Node> {
    try {
      return await client.get(nodes, { name }, { signal });
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
    }
    // One that was deleted while it lives comes back: its volumes never went away.
    const inUse = volumesInUse();
    const readiness = readinessOf(undefined, inUse !== undefined);
    const status = {
      ...nodeStatus(facts, readyCondition(undefined, readiness, clock.wall())),
      ...(inUse !== undefined && inUse.length > 0 && { volumesInUse: [...inUse] }),
    };
    const object = { metadata: { name, ...nodeMetadata(facts) }, status };
    try {
      return await client.create(nodes, object, { signal });
    } catch (error) {
      if (!isKubeError(error, "AlreadyExists")) throw error;
      return client.get(nodes, { name }, { signal });
    }
  }

  /** Strategic: conditions merge by type, so that those of others stay, as do the lists of volumes. */
  async function tell(
    node: Node,
    readiness: Readiness,
    options: { readonly signal?: AbortSignal; readonly deadlineMs?: number },
  ): Promise<void> {
    const ref = { name };
    const uid = node.metadata.uid;
    const metadata = { uid, ...nodeMetadata(facts) };
    const status = nodeStatus(facts, readyCondition(node, readiness, clock.wall()));
    const repeatable = { ...options, repeatable: true };
    await client.patch(nodes, ref, { type: "strategic", value: { metadata } }, repeatable);
    await client.patch(
      nodes,
      ref,
      { type: "strategic", value: { metadata: { uid }, status } },
      { ...repeatable, subresource: "status" },
    );
  }

  async function renew(lease: Lease, signal: AbortSignal): Promise<void> {
    const ref = { name, namespace: lease.metadata.namespace };
    try {
      await client.patch(leases, ref, { type: "merge", value: lease }, { signal, repeatable: true });
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
      await client.create(leases, lease, { signal });
    }
  }

  async function beatSafely(signal: AbortSignal): Promise<void> {
    try {
      await beat(signal);
      if (failing) log.info("node is heard again");
      failing = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!failing) log.warn("node not heard; it beats on", { error });
      failing = true;
    }
  }

  async function sayGoodbye(): Promise<void> {
    try {
      const options = { deadlineMs: FAREWELL_MS };
      await tell(await client.get(nodes, { name }, options), "stopped", options);
    } catch (error) {
      log.warn("node stopped without a word; it will look ready until somebody looks at its lease", {
        error,
      });
    }
  }

  return {
    registered: () => registered,
    async run(signal) {
      while (!signal.aborted) {
        await beatSafely(signal);
        // A sleep rejects on abort, which is how this ends.
        await clock.sleep(registered ? BEAT_MS : REGISTER_RETRY_MS, signal).catch(() => undefined);
      }
      if (registered) await sayGoodbye();
    },
  };
}
