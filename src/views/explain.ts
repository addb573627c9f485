import type { Pod } from "../kube/api/pod.ts";
import type { KubeObject } from "../kube/object.ts";
import { chainOf, type ChainLink } from "./chain.ts";
import type { Cluster } from "./cluster.ts";
import { hasStarted } from "./conditions.ts";
import { diagnosePod, diagnoseVolume, type Diagnosed } from "./diagnose.ts";
import { explainAttachment } from "./explain-attachment.ts";
import { explainDeployment } from "./explain-deployment.ts";
import { explainDriver } from "./explain-driver.ts";
import { explainNode } from "./explain-node.ts";
import { explainSnapshot } from "./explain-snapshot.ts";
import { explainStatefulSet } from "./explain-stateful-set.ts";
import { explainStorageClass } from "./explain-storage-class.ts";
import { idOf, isDeleting, nameOf, objectsAt, textAt } from "./fields.ts";
import { leftover } from "./leftovers.ts";
import { explanation, type Explanation } from "./explanation.ts";
import { contradictionsOf, inWords } from "./consistency/contradictions.ts";
import { listedOnly } from "./consistency/listed.ts";
import { claimRefOf } from "./fit.ts";
import { says, type Finding } from "./reasons/reasons.ts";
import { BASE_KINDS } from "./objects.ts";
import type { Subject } from "./subjects.ts";
import { claimView, persistentVolumeView, volumeViewsOf, type VolumeView } from "./volume-view.ts";

export type { Subject } from "./subjects.ts";

/** Why the thing asked about is not as it should be, or that it is; undefined where it does not exist. */
export function explain(cluster: Cluster, subject: Subject): Explanation | undefined {
  const id = `${subject.namespace}/${subject.name}`;
  switch (subject.kind) {
    case "pod": {
      const pod = cluster.find("pods", id);
      return pod === undefined ? explainUnmade(cluster, subject) : explainPod(cluster, pod);
    }
    case "pvc":
      return explainClaim(cluster, id) ?? explainUnmade(cluster, subject);
    case "pv":
      return explainVolume(cluster, subject.name);
    case "node":
      return explainNode(cluster, subject.name);
    case "va":
      return explainAttachment(cluster, subject.name);
    case "statefulset":
      return explainStatefulSet(cluster, id);
    case "deployment":
      return explainDeployment(cluster, id);
    case "volumesnapshot":
      return explainSnapshot(cluster, id);
    case "storageclass":
      return explainStorageClass(cluster, subject.name);
    case "csidriver":
      return explainDriver(cluster, subject.name);
  }
}

/** A pod `db-0` or a claim `data-db-0` that a StatefulSet should have made: why it has not is what is asked. */
function explainUnmade(cluster: Cluster, { kind, name, namespace }: Subject): Explanation | undefined {
  const [, base] = /^(.+)-\d+$/.exec(name) ?? [];
  if (base === undefined) return undefined;
  const set = cluster.objects.statefulSets.find(
    (item) =>
      textAt(item, "metadata", "namespace") === namespace &&
      (kind === "pod" ? nameOf(item) === base : templatesOf(item).includes(base)),
  );
  return set && explainStatefulSet(cluster, idOf(set));
}

/** What the claims of a StatefulSet are called, without the ordinal. */
function templatesOf(set: KubeObject): readonly string[] {
  return objectsAt(set, "spec", "volumeClaimTemplates").map((item) => `${nameOf(item)}-${nameOf(set)}`);
}

function explainPod(cluster: Cluster, pod: Pod): Explanation {
  const diagnosed = diagnosePod(cluster, pod);
  const views = volumeViewsOf(cluster, pod);
  const view = diagnosed[0]?.view ?? views.find(({ claimId }) => claimId !== "") ?? views[0];
  return explanation(cluster, {
    reads: BASE_KINDS,
    contradictions: views.flatMap(contradictionsOf).map(inWords),
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
  if (blocks.startsWith("I do not know"))
    return blocks.replace("what is wrong", `what is wrong with pod ${id}`);
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
  // What a pod has while it ends changes from moment to moment, and nothing of it is missed.
  if (isDeleting(pod))
    return `Pod ${idOf(pod)} is ending, and nothing is known that keeps it: its volumes are unmounted when its containers have stopped`;
  return `Pod ${idOf(pod)} is healthy: it runs on node ${textAt(pod, "spec", "nodeName") || "<unknown>"} and ${what}; nothing blocks it`;
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
    reads: BASE_KINDS,
    contradictions: views.flatMap(contradictionsOf).map(inWords),
    subject: `PersistentVolumeClaim ${id}`,
    lead: (blocks) => blocks,
    healthy: `Claim ${id} is healthy: ${phase} to ${view.pvName || "nothing"}, and ${use}; nothing blocks it`,
    findings: [...findings, ...leftoversOf(cluster, view), ...listedOnly(cluster, view)],
    chain: chainOf(view),
    others: views.filter((item) => item !== view).map((item) => `pod ${idOf(item.pod)}: ${sentenceOf(item)}`),
  });
}

function explainVolume(cluster: Cluster, name: string): Explanation | undefined {
  const pv = cluster.find("volumes", name);
  if (pv === undefined) return missingVolume(cluster, name);
  const claimId = claimRefOf(pv);
  const claim = cluster.find("claims", claimId);
  const views = cluster
    .podsOfClaim(claimId)
    .flatMap((pod) => volumeViewsOf(cluster, pod).filter((item) => item.pvName === name));
  const alone = claim === undefined ? persistentVolumeView(cluster, pv) : claimView(cluster, claim, claimId);
  const { view, findings } = worst(views) ?? unused(alone);
  const all = [...findings, ...leftoversOf(cluster, view), ...listedOnly(cluster, view)];
  const contradictions = views.flatMap(contradictionsOf).map(inWords);
  return ofVolume(cluster, name, { findings: all, chain: chainOf(view), contradictions });
}

/** A PersistentVolume that is gone, but that a claim or a VolumeAttachment still names; undefined where nobody does. */
function missingVolume(cluster: Cluster, name: string): Explanation | undefined {
  const [claimId] = cluster.claimsOf(name);
  const claim = claimId === undefined ? undefined : cluster.find("claims", claimId);
  const left = cluster.attachmentsOf(name).flatMap((item) => leftover(cluster, item) ?? []);
  if (claim === undefined || claimId === undefined)
    return left.length === 0 ? undefined : ofVolume(cluster, name, { findings: left, chain: [] });
  const view = claimView(cluster, claim, claimId);
  return ofVolume(cluster, name, { findings: [...diagnoseVolume(view), ...left], chain: chainOf(view) });
}

function ofVolume(
  cluster: Cluster,
  name: string,
  {
    findings,
    chain,
    contradictions = [],
  }: {
    readonly findings: readonly Finding[];
    readonly chain: readonly ChainLink[];
    readonly contradictions?: readonly string[];
  },
): Explanation {
  const pv = cluster.find("volumes", name);
  const phase = textAt(pv, "status", "phase") || (pv === undefined ? "gone" : "without a phase");
  const on = cluster.attachmentsOf(name).map((item) => textAt(item, "spec", "nodeName"));
  return explanation(cluster, {
    reads: BASE_KINDS,
    contradictions,
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
