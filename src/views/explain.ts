import type { Pod } from "../kube/api/pod.ts";
import { chainOf, type ChainLink } from "./chain.ts";
import type { Cluster } from "./cluster.ts";
import { hasStarted } from "./conditions.ts";
import { diagnosePod, diagnoseVolume, type Diagnosed } from "./diagnose.ts";
import { explainNode } from "./explain-node.ts";
import { idOf, isDeleting, textAt } from "./fields.ts";
import { leftover } from "./leftovers.ts";
import { explanation, type Explanation } from "./explanation.ts";
import { says, type Finding } from "./reasons/reasons.ts";
import { claimView, persistentVolumeView, volumeViewsOf, type VolumeView } from "./volume-view.ts";

export interface Subject {
  readonly kind: "pod" | "pvc" | "pv" | "node";
  readonly name: string;
  /** Of pods and claims. */
  readonly namespace: string;
}

/** Why the thing asked about is not as it should be, or that it is; undefined where it does not exist. */
export function explain(cluster: Cluster, subject: Subject): Explanation | undefined {
  const id = `${subject.namespace}/${subject.name}`;
  switch (subject.kind) {
    case "pod": {
      const pod = cluster.find("pods", id);
      return pod && explainPod(cluster, pod);
    }
    case "pvc":
      return explainClaim(cluster, id);
    case "pv":
      return explainVolume(cluster, subject.name);
    case "node":
      return explainNode(cluster, subject.name);
  }
}

function explainPod(cluster: Cluster, pod: Pod): Explanation {
  const diagnosed = diagnosePod(cluster, pod);
  const views = volumeViewsOf(cluster, pod);
  const view = diagnosed[0]?.view ?? views.find(({ claimId }) => claimId !== "") ?? views[0];
  return explanation(cluster, {
    subject: `Pod ${idOf(pod)}`,
    lead: (blocks) => leadOf(pod, blocks),
    healthy: healthyPod(pod, views),
    findings: diagnosed.map(({ finding }) => finding),
    chain: view === undefined ? [] : chainOf(view),
    others: views
      .filter((item) => item.volumeName !== view?.volumeName && item.claimId !== "")
      .map((item) => stateOf(item, diagnosed)),
  });
}

/** What blocks is about the pod; a sentence that says so itself needs no more. */
function leadOf(pod: Pod, blocks: string): string {
  const id = idOf(pod);
  if (hasStarted(pod))
    return `pod ${id} is ${isDeleting(pod) ? "ending" : textAt(pod, "status", "phase").toLowerCase() || "started"}, but ${blocks}`;
  return blocks.startsWith(`pod ${id} `) ? blocks : `pod ${id} waits: ${blocks}`;
}

function healthyPod(pod: Pod, views: readonly VolumeView[]): string {
  const claims = views.filter(({ claimId }) => claimId !== "").length;
  const phase = textAt(pod, "status", "phase");
  if (phase === "Succeeded" || phase === "Failed")
    return `Pod ${idOf(pod)} is over (${phase}); it needs its volumes no more`;
  const what =
    claims === 0 ? "uses no claims" : claims === 1 ? "has its volume" : `has all its ${claims} volumes`;
  const ending = isDeleting(pod)
    ? " It is ending: its volumes are unmounted when its containers have stopped"
    : "";
  return `Pod ${idOf(pod)} is healthy: it runs on node ${textAt(pod, "spec", "nodeName") || "<unknown>"} and ${what}; nothing blocks it${ending && `.${ending}`}`;
}

function stateOf(view: VolumeView, diagnosed: readonly Diagnosed[]): string {
  const finding = diagnosed.find((item) => item.view.volumeName === view.volumeName)?.finding;
  const name = `volume ${view.volumeName} (claim ${view.claimId})`;
  return finding === undefined ? `${name}: nothing wrong` : `${name}: ${says(finding)}`;
}

/** By the pods that use it, one that waits before one that runs; else by itself. */
function explainClaim(cluster: Cluster, id: string): Explanation | undefined {
  const claim = cluster.find("claims", id);
  if (claim === undefined) return undefined;
  const views = cluster
    .podsOfClaim(id)
    .flatMap((pod) => volumeViewsOf(cluster, pod).filter(({ claimId }) => claimId === id));
  const { view, findings } = worst(views) ?? unused(claimView(cluster, claim, id));
  const phase = textAt(claim, "status", "phase") || "without a phase";
  const use =
    views.length === 0 ? "no pod uses it" : `pod ${views.map((item) => idOf(item.pod)).join(", ")} uses it`;
  return explanation(cluster, {
    subject: `PersistentVolumeClaim ${id}`,
    lead: (blocks) => blocks,
    healthy: `Claim ${id} is healthy: ${phase} to ${view.pvName || "nothing"}, and ${use}; nothing blocks it`,
    findings: [...findings, ...leftoversOf(cluster, view)],
    chain: chainOf(view),
    others: views.filter((item) => item !== view).map((item) => `pod ${idOf(item.pod)}: ${sentenceOf(item)}`),
  });
}

function explainVolume(cluster: Cluster, name: string): Explanation | undefined {
  const pv = cluster.find("volumes", name);
  const holders = cluster.attachmentsOf(name);
  if (pv === undefined) {
    const [holder] = holders;
    const finding = holder && leftover(cluster, holder);
    return finding && ofVolume(cluster, name, [finding], []);
  }
  const claimId = `${textAt(pv, "spec", "claimRef", "namespace")}/${textAt(pv, "spec", "claimRef", "name")}`;
  const claim = cluster.find("claims", claimId);
  const views = cluster
    .podsOfClaim(claimId)
    .flatMap((pod) => volumeViewsOf(cluster, pod).filter((item) => item.pvName === name));
  const alone = claim === undefined ? persistentVolumeView(cluster, pv) : claimView(cluster, claim, claimId);
  const { view, findings } = worst(views) ?? unused(alone);
  return ofVolume(cluster, name, [...findings, ...leftoversOf(cluster, view)], chainOf(view));
}

function ofVolume(
  cluster: Cluster,
  name: string,
  findings: readonly Finding[],
  chain: readonly ChainLink[],
): Explanation {
  const pv = cluster.find("volumes", name);
  const phase = textAt(pv, "status", "phase") || (pv === undefined ? "gone" : "without a phase");
  const on = cluster.attachmentsOf(name).map((item) => textAt(item, "spec", "nodeName"));
  return explanation(cluster, {
    subject: `PersistentVolume ${name}`,
    lead: (blocks) => blocks,
    healthy: `PersistentVolume ${name} is healthy: ${phase}, ${on.length === 0 ? "attached nowhere" : `attached to ${on.join(", ")}`}; nothing blocks it`,
    findings,
    chain,
    others: [],
  });
}

interface Judged {
  readonly view: VolumeView;
  readonly findings: readonly Finding[];
}

/** A pod that waits says more than one that runs. */
function worst(views: readonly VolumeView[]): Judged | undefined {
  const judged = views.map((view) => ({ view, findings: diagnoseVolume(view) }));
  return judged.find(({ findings }) => findings.length > 0) ?? judged[0];
}

function unused(view: VolumeView): Judged {
  return { view, findings: diagnoseVolume(view) };
}

function leftoversOf(cluster: Cluster, view: VolumeView): readonly Finding[] {
  const all = [...cluster.attachmentsOf(view.pvName), ...cluster.disks().attachmentsOf(view.uniqueName)];
  return [...new Set(all)].flatMap((item) => leftover(cluster, item) ?? []);
}

function sentenceOf(view: VolumeView): string {
  const [finding] = diagnoseVolume(view);
  return finding === undefined ? "nothing wrong" : says(finding);
}
