import type { KubeObject } from "../kube/object.ts";
import { seen } from "./checks/check.ts";
import type { Cluster } from "./cluster.ts";
import { createdAt, field, idOf, isDeleting, nameOf, oneLine, textAt, textsAt, timeAt } from "./fields.ts";
import type { Evidence, Finding, Reason } from "./reasons/reasons.ts";
import { isUnbound } from "./storage-classes.ts";
import { someOf, told } from "./told.ts";

/** One VolumeSnapshot with what it is taken from, by and into, as far as the objects allow. */
export interface SnapshotView {
  readonly cluster: Cluster;
  readonly snapshot: KubeObject;
  readonly namespace: string;
  /** `namespace/name` of the claim it is taken of; empty for one made of an existing content. */
  readonly claimId: string;
  readonly claim: KubeObject | undefined;
  readonly pv: KubeObject | undefined;
  /** Of the volume, or of the content where that is known. */
  readonly driver: string;
  readonly className: string;
  readonly contentName: string;
  readonly content: KubeObject | undefined;
}

export function snapshotViewOf(cluster: Cluster, snapshot: KubeObject): SnapshotView {
  const namespace = textAt(snapshot, "metadata", "namespace");
  const source = textAt(snapshot, "spec", "source", "persistentVolumeClaimName");
  const claimId = source === "" ? "" : `${namespace}/${source}`;
  const claim = cluster.find("claims", claimId);
  const pv = cluster.find("volumes", textAt(claim, "spec", "volumeName"));
  const contentName =
    textAt(snapshot, "status", "boundVolumeSnapshotContentName") ||
    textAt(snapshot, "spec", "source", "volumeSnapshotContentName");
  const content = cluster.find("snapshotContents", contentName);
  return {
    cluster,
    snapshot,
    namespace,
    claimId,
    claim,
    pv,
    driver: textAt(pv, "spec", "csi", "driver") || textAt(content, "spec", "driver"),
    className: textAt(snapshot, "spec", "volumeSnapshotClassName"),
    contentName,
    content,
  };
}

type SnapshotCheck = (view: SnapshotView) => Finding | undefined;

/** Why it is not ready to use, or does not go; undefined for one that is well. */
export function snapshotFinding(view: SnapshotView): Finding | undefined {
  if (isDeleting(view.snapshot)) return deleting(view);
  if (field(view.snapshot, "status", "readyToUse") === true) return undefined;
  for (const check of IN_ORDER) {
    const finding = check(view);
    if (finding !== undefined) return finding;
  }
  return undefined;
}

const sourceClaim: SnapshotCheck = (view) => {
  const { cluster, claimId, claim, namespace, contentName } = view;
  // What was taken once does not need its claim any more.
  if (claimId === "" || contentName !== "") return undefined;
  const evidence = [
    seen(snapshotNamed(view), "spec.source.persistentVolumeClaimName", claimId.split("/")[1]),
  ];
  if (claim === undefined) {
    return cluster.knows("claims", namespace)
      ? snapshotTold("snapshot-source-missing", view, {}, evidence)
      : undefined;
  }
  if (!isUnbound(claim)) return undefined;
  const phase = textAt(claim, "status", "phase") || "no phase";
  const status = seen(`PersistentVolumeClaim ${claimId}`, "status.phase", phase);
  return snapshotTold("snapshot-source-unbound", view, { phase }, [...evidence, status]);
};

const notCsi: SnapshotCheck = (view) => {
  if (view.pv === undefined || view.driver !== "") return undefined;
  const spec = Object.entries(Object(field(view.pv, "spec")) as object);
  const source = spec.flatMap(([key, value]) => (value === undefined ? [] : [key])).join(", ");
  return snapshotTold("snapshot-source-not-csi", view, {}, [
    seen(`PersistentVolume ${nameOf(view.pv)}`, "spec", source),
  ]);
};

const snapshotClass: SnapshotCheck = (view) => {
  const { cluster, className, driver, contentName, claimId } = view;
  if (!cluster.knows("snapshotClasses") || contentName !== "" || claimId === "") return undefined;
  const all = cluster.objects.snapshotClasses;
  const others =
    all.length === 0
      ? "there is none"
      : `there are: ${someOf(
          all.map((item) => `${nameOf(item)} of ${textAt(item, "driver")}`),
          5,
        )}`;
  const evidence = [seen(snapshotNamed(view), "spec.volumeSnapshotClassName", className)];
  if (className === "") {
    if (driver === "" || all.some((item) => isDefault(item) && textAt(item, "driver") === driver))
      return undefined;
    return snapshotTold("snapshot-class-no-default", view, { others }, evidence);
  }
  const found = cluster.find("snapshotClasses", className);
  if (found === undefined) return snapshotTold("snapshot-class-missing", view, { others }, evidence);
  const classDriver = textAt(found, "driver");
  if (driver === "" || classDriver === driver) return undefined;
  const drivers = [
    seen(`VolumeSnapshotClass ${className}`, "driver", classDriver),
    seen(`PersistentVolume ${nameOf(view.pv)}`, "spec.csi.driver", driver),
  ];
  return snapshotTold("snapshot-class-wrong-driver", view, { classDriver }, drivers);
};

function isDefault(snapshotClass: KubeObject): boolean {
  const key = "snapshot.storage.kubernetes.io/is-default-class";
  return textAt(snapshotClass, "metadata", "annotations", key) === "true";
}

const contentBound: SnapshotCheck = (view) => {
  const { cluster, contentName, content } = view;
  if (contentName === "" || !cluster.knows("snapshotContents")) return undefined;
  if (content === undefined) {
    return snapshotTold("snapshot-content-missing", view, {}, [
      seen("VolumeSnapshotContent", "metadata.name", `no ${contentName}`),
    ]);
  }
  const [namespace, name] = ["namespace", "name"].map((key) =>
    textAt(content, "spec", "volumeSnapshotRef", key),
  );
  const other = `${namespace}/${name}`;
  if (name === "" || other === idOf(view.snapshot)) return undefined;
  const evidence = [seen(`VolumeSnapshotContent ${contentName}`, "spec.volumeSnapshotRef", other)];
  return snapshotTold("snapshot-content-elsewhere", view, { other }, evidence);
};

const failed: SnapshotCheck = (view) => {
  const of = [
    [snapshotNamed(view), view.snapshot],
    [`VolumeSnapshotContent ${view.contentName}`, view.content],
  ] as const;
  for (const [object, value] of of) {
    const message = textAt(value, "status", "error", "message");
    if (message === "") continue;
    const evidence = [seen(object, "status.error.message", message)];
    return snapshotTold(
      "snapshot-failed",
      view,
      { message: oneLine(message) },
      evidence,
      timeAt(value, "status", "error", "time"),
    );
  }
  return undefined;
};

const BEING_CREATED = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";

/** Nobody has said anything: it is the controller that is silent, then the driver's sidecar, and only then is it at work. */
const silent: SnapshotCheck = (view) => {
  const { cluster, content, contentName } = view;
  if (contentName === "") {
    const evidence = [
      seen(snapshotNamed(view), "status.boundVolumeSnapshotContentName", ""),
      seen(
        snapshotNamed(view),
        "metadata.finalizers",
        textsAt(view.snapshot, "metadata", "finalizers").join(", "),
      ),
    ];
    return snapshotTold("snapshot-controller-silent", view, {}, evidence);
  }
  if (!cluster.knows("snapshotContents")) return undefined;
  const object = `VolumeSnapshotContent ${contentName}`;
  const handle = textAt(content, "status", "snapshotHandle");
  const taken = textAt(content, "metadata", "annotations", BEING_CREATED);
  const evidence = [
    seen(object, "status.snapshotHandle", handle),
    seen(object, `metadata.annotations[${BEING_CREATED}]`, taken),
  ];
  return snapshotTold(
    handle === "" && taken === "" ? "snapshotter-silent" : "snapshot-under-way",
    view,
    {},
    evidence,
  );
};

/** In causal order: what comes first explains what comes after it. */
const IN_ORDER: readonly SnapshotCheck[] = [sourceClaim, notCsi, snapshotClass, contentBound, failed, silent];

/** Kept by a claim that is being made from it, by its content, or by nobody who works. */
function deleting(view: SnapshotView): Finding {
  const finalizers = textsAt(view.snapshot, "metadata", "finalizers").join(", ");
  const evidence = [seen(snapshotNamed(view), "metadata.finalizers", finalizers)];
  const sinceMs = timeAt(view.snapshot, "metadata", "deletionTimestamp");
  const [restored] = restoredFrom(view).filter((claim) => isUnbound(claim));
  if (restored !== undefined) {
    const names = { restored: idOf(restored), restoredName: nameOf(restored) };
    const source = seen(`PersistentVolumeClaim ${idOf(restored)}`, "spec.dataSource", nameOf(view.snapshot));
    return snapshotTold("snapshot-restoring", view, names, [...evidence, source], sinceMs);
  }
  const message = textAt(view.content, "status", "error", "message");
  const [kept, then] =
    message !== ""
      ? [
          `driver ${view.driver} cannot delete it: ${oneLine(message)}`,
          "it is tried again with growing pauses",
        ]
      : view.content !== undefined
        ? [
            `VolumeSnapshotContent ${view.contentName} is still there`,
            "it goes once the driver has deleted the snapshot in its backend",
          ]
        : [
            "the snapshot-controller has not taken them off",
            "it goes as soon as the snapshot-controller runs",
          ];
  return snapshotTold(
    "snapshot-deleting",
    view,
    { finalizers: finalizers || "none", kept, then },
    evidence,
    sinceMs,
  );
}

/** Claims whose data source it is. */
export function restoredFrom({ cluster, snapshot, namespace }: SnapshotView): readonly KubeObject[] {
  return cluster.objects.claims.filter((claim) =>
    ["dataSource", "dataSourceRef"].some(
      (key) =>
        textAt(claim, "spec", key, "kind") === "VolumeSnapshot" &&
        textAt(claim, "spec", key, "name") === nameOf(snapshot) &&
        (textAt(claim, "spec", key, "namespace") || textAt(claim, "metadata", "namespace")) === namespace,
    ),
  );
}

export function snapshotNamed({ snapshot }: SnapshotView): string {
  return `VolumeSnapshot ${idOf(snapshot)}`;
}

function snapshotTold(
  reason: Reason,
  view: SnapshotView,
  names: Readonly<Record<string, string>>,
  evidence: readonly Evidence[],
  sinceMs = createdAt(view.snapshot),
): Finding {
  const all = {
    ns: view.namespace,
    snapshot: idOf(view.snapshot),
    snapshotName: nameOf(view.snapshot),
    claim: view.claimId,
    claimName: view.claimId.split("/")[1] ?? "",
    pv: nameOf(view.pv),
    driver: view.driver,
    class: view.className,
    content: view.contentName,
    ...names,
  };
  return told(reason, all, { evidence, sinceMs });
}
