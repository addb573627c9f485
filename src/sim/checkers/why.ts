import type { Pod } from "../../kube/api/pod.ts";
import { attacherWaits, controllerWaits, nodePage, nodeWaits } from "../../processes/debug-reading.ts";
import { createCluster, type Cluster } from "../../views/cluster.ts";
import { explain } from "../../views/explain.ts";
import type { Explanation } from "../../views/explanation.ts";
import { NO_OBJECTS, OPTIONAL_KINDS } from "../../views/objects.ts";
import { NAMESPACE } from "../apps.ts";
import type { World } from "../world.ts";
import { FaultLedger } from "./fault-ledger.ts";
import { factsOf, problemOf } from "./why-answers.ts";

/** A question costs as much as ten simulated seconds of a cluster, and a wait that misleads lasts. */
const LOOK_MS = 60_000;
/** A lease runs out after 40 s, and who watches leases looks every 5: until then nobody can know of a machine without power. */
const BLIND_MS = 90_000;
/** What was broken so lately can still be the reason: back-offs grow to five minutes. */
const LATELY_MS = 6 * 60_000;

/**
 * `mooring why`, asked about a pod that has not run for longer than anybody could fail to notice, never calls it healthy, and
 * names something that is broken, or was lately: a process, a machine or a driver that a fault has hit. `onAnswer` is told the
 * reason of each answer that was judged.
 */
export function watchWhy(world: World, onAnswer: (reason: string) => void = () => undefined): () => void {
  const downSince = new Map<string, { readonly life: string; readonly ms: number }>();
  const ledger = new FaultLedger(world);
  let askedMs = 0;

  function isDown({ metadata, spec, status }: Pod): boolean {
    if (status?.phase === "Succeeded" || metadata.deletionTimestamp !== undefined) return false;
    const node = world.nodes.get(spec?.nodeName ?? "");
    // On a machine with power a pod is what its agent has written: of a container that ended by itself nobody else can know.
    if (status?.phase === "Running" && node?.machine.isOn === true) return false;
    return node?.containers.running.has(metadata.uid ?? "") !== true;
  }

  /** One that had started has run until this boot of its machine was over, however short that was. */
  function lifeOf({ spec, status }: Pod): string {
    return status?.phase === "Running" ? (world.nodes.get(spec?.nodeName ?? "")?.machine.bootId ?? "") : "";
  }

  return () => {
    const { nowMs } = world.scheduler;
    ledger.look();
    // Without the API server nobody can answer, and nobody hears of a lease that ran out.
    const down = world.server.isUp ? world.objects.all("pods").filter(isDown) : [];
    const uids = new Set(down.map(({ metadata }) => metadata.uid ?? ""));
    for (const uid of downSince.keys()) if (!uids.has(uid)) downSince.delete(uid);
    for (const pod of down) {
      const [uid, life] = [pod.metadata.uid ?? "", lifeOf(pod)];
      if (downSince.get(uid)?.life !== life) downSince.set(uid, { life, ms: nowMs });
    }
    const forMs = ({ metadata }: Pod) => nowMs - (downSince.get(metadata.uid ?? "")?.ms ?? nowMs);
    const asked = down.filter((pod) => forMs(pod) >= BLIND_MS);
    if (nowMs - askedMs < LOOK_MS || asked.length === 0) return;
    askedMs = nowMs;
    const cluster = clusterOf(world);
    const faults = ledger.lately(LATELY_MS);
    // Where nothing was broken for so long nothing can be named: that everything settles is judged by itself.
    if (faults.length === 0) return;
    for (const pod of asked) {
      const name = pod.metadata.name ?? "";
      const answer = whyPod(cluster, name);
      if (answer === undefined) continue;
      onAnswer(answer.blocker?.reason ?? "healthy");
      const problem = problemOf(answer, factsOf(world, pod), faults);
      if (problem !== undefined)
        world.violate(
          `why: pod ${name} has not run for ${Math.round(forMs(pod) / 1_000)} s, and the answer ${problem}: ${answer.summary}`,
        );
    }
  };
}

/** What `mooring why pod/NAME` says, with the pages of every process that runs. */
export function whyPod(cluster: Cluster, name: string): Explanation | undefined {
  return explain(cluster, { kind: "pod", name, namespace: NAMESPACE });
}

/** The cluster as the command reads it, from the store: no request is sent. */
export function clusterOf(world: World): Cluster {
  const { objects, scheduler } = world;
  const nowMs = scheduler.createClock().wall().getTime();
  const runs = (process: string) => world.processes.get(process)?.isRunning === true;
  const controllers = [...world.controllers].filter(([name]) => runs(name));
  const page = runs("attacher") ? world.attacherPage?.() : undefined;
  const nodeReports = [...world.nodes.values()].flatMap(({ agent, agentProcess }) =>
    agentProcess.isRunning && agent !== undefined ? [agent.manager.report()] : [],
  );
  const given = {
    ...NO_OBJECTS,
    pods: objects.all("pods"),
    claims: objects.all("persistentvolumeclaims"),
    volumes: objects.all("persistentvolumes"),
    attachments: objects.all("volumeattachments.storage.k8s.io"),
    nodes: objects.all("nodes"),
    csiNodes: objects.all("csinodes.storage.k8s.io"),
    csiDrivers: objects.all("csidrivers.storage.k8s.io"),
    storageClasses: objects.all("storageclasses.storage.k8s.io"),
    events: objects.all("events").filter(({ type }) => type === "Warning"),
    notAsked: OPTIONAL_KINDS,
    waits: [
      ...controllers.flatMap(([, current]) =>
        controllerWaits(current()?.report({ waitingOnly: true }), nowMs),
      ),
      ...attacherWaits(page, nowMs),
      ...nodeReports.flatMap((report) => nodeWaits(report, nowMs)),
    ],
    nodePages: nodeReports.map(nodePage),
  };
  return createCluster(given, nowMs);
}
