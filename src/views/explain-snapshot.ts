import type { KubeObject } from "../kube/object.ts";
import type { ChainLink } from "./chain.ts";
import { causeOfClaim } from "./claim-cause.ts";
import { seen } from "./checks/check.ts";
import type { Cluster } from "./cluster.ts";
import { explanation, type Explanation } from "./explanation.ts";
import { createdAt, field, idOf, isDeleting, nameOf, textAt } from "./fields.ts";
import type { Evidence, Finding } from "./reasons/reasons.ts";
import {
  restoredFrom,
  snapshotFinding,
  snapshotNamed,
  snapshotViewOf,
  type SnapshotView,
} from "./snapshot-findings.ts";

/** A VolumeSnapshot: whether it is ready to use, and what keeps it from being taken, or from going. */
export function explainSnapshot(cluster: Cluster, id: string): Explanation | undefined {
  const snapshot = cluster.find("snapshots", id);
  if (snapshot === undefined) return undefined;
  const view = snapshotViewOf(cluster, snapshot);
  const finding = snapshotFinding(view);
  return explanation(cluster, {
    subject: `VolumeSnapshot ${id}`,
    lead: (blocks) => blocks,
    healthy: healthy(view),
    findings: finding === undefined ? [] : [finding, ...behind(view, finding)],
    chain: chainOf(view),
    others: restoredFrom(view).map(
      (claim) => `claim ${idOf(claim)} is made from it: ${textAt(claim, "status", "phase") || "no phase"}`,
    ),
  });
}

/** What keeps its source from being there is the cause behind the cause. */
function behind({ cluster, claimId }: SnapshotView, { reason }: Finding): readonly Finding[] {
  if (reason !== "snapshot-source-unbound") return [];
  const cause = causeOfClaim(cluster, claimId);
  return cause === undefined ? [] : [cause];
}

function healthy({ snapshot, claimId, driver, contentName }: SnapshotView): string {
  const size = textAt(snapshot, "status", "restoreSize");
  const of = claimId === "" ? `from content ${contentName}` : `of claim ${claimId}`;
  return `VolumeSnapshot ${idOf(snapshot)} is healthy: taken ${of}${driver === "" ? "" : ` by driver ${driver}`}${size === "" ? "" : `, ${size}`}, and ready to use; nothing blocks it`;
}

function chainOf(view: SnapshotView): readonly ChainLink[] {
  const { cluster, snapshot, claim, claimId, pv, content, contentName, className } = view;
  const ready = field(snapshot, "status", "readyToUse") === true;
  const link = (
    name: ChainLink["link"],
    object: string,
    of: KubeObject | undefined,
    state: string,
    evidence: readonly Evidence[] = [],
  ): readonly ChainLink[] =>
    object === "" ? [] : [{ link: name, object, state, sinceMs: createdAt(of), evidence }];
  const phase = (of: KubeObject | undefined, known: boolean) =>
    of === undefined
      ? known
        ? "missing"
        : "unknown: not permitted to read"
      : textAt(of, "status", "phase") || "no phase";
  return [
    ...link(
      "snapshot",
      idOf(snapshot),
      snapshot,
      isDeleting(snapshot) ? "deleting" : ready ? "ready" : "not ready",
      [seen(snapshotNamed(view), "status.readyToUse", field(snapshot, "status", "readyToUse"))],
    ),
    ...link("claim", claimId, claim, phase(claim, cluster.knows("claims", view.namespace))),
    ...link("volume", nameOf(pv), pv, phase(pv, true), [
      seen(`PersistentVolume ${nameOf(pv)}`, "spec.csi.driver", view.driver),
    ]),
    ...link(
      "class",
      className || (claimId === "" ? "" : "–"),
      cluster.find("snapshotClasses", className),
      classState(view),
    ),
    ...link("content", contentName || "–", content, contentState(view), [
      seen(
        `VolumeSnapshotContent ${contentName}`,
        "status.snapshotHandle",
        textAt(content, "status", "snapshotHandle"),
      ),
    ]),
  ];
}

function classState({ cluster, className }: SnapshotView): string {
  if (className === "") return "none named";
  if (cluster.find("snapshotClasses", className) !== undefined) return "there";
  return cluster.knows("snapshotClasses") ? "missing" : "unknown: not permitted to read";
}

function contentState({ cluster, contentName, content }: SnapshotView): string {
  if (contentName === "") return "not made yet";
  if (content === undefined)
    return cluster.knows("snapshotContents") ? "missing" : "unknown: not permitted to read";
  if (textAt(content, "status", "error", "message") !== "") return "failed";
  return field(content, "status", "readyToUse") === true ? "ready" : "not ready";
}
