import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { createPromMetrics, type PromMetrics } from "../../base/prom-metrics.ts";
import type { Random } from "../../base/random.ts";
import { createEventRecorder, type EventRecorder } from "../../kube/events/events.ts";
import type { ClusterAccess } from "../../kube/transport/access.ts";
import { openCluster, type ClusterClient } from "../cluster-client.ts";
import type { Parts } from "./parts.ts";

/** The world of one member of the cluster: in a cluster of many machines it would be a process of its own. */
export interface Member {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: PromMetrics;
  readonly cluster: ClusterClient;
  /** Of the machine it runs on, unless told otherwise. */
  readonly hostname?: string;
}

export interface MemberDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly parts: Parts;
  readonly access: ClusterAccess;
}

/** A connection and metrics of its own: what it does can be told apart, and a burst of one does not hold up another. */
export async function openMember(
  { clock, random, log, parts, access }: MemberDeps,
  name: string,
): Promise<Member> {
  const world = {
    clock,
    random: random.fork(name),
    log: log.with({ component: name }),
    metrics: createPromMetrics(),
  };
  const cluster = await openCluster(world, { access, component: name });
  parts.atEnd(`${name}'s connection`, () => cluster.close());
  return { ...world, cluster };
}

/** Who an event comes from, as upstream's programs name themselves. */
export function startEvents(
  { cluster, ...world }: Member,
  parts: Parts,
  source: { readonly component: string; readonly host: string },
): EventRecorder {
  const { eventClient: client } = cluster;
  const random = world.random.fork("events");
  const events = createEventRecorder({ ...world, client, random }, source);
  parts.run(`events of ${source.component}`, (signal) => events.run(signal));
  return events;
}
