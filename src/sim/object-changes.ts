import type { ObjectStore, StoreEvent } from "../apiserver/store/store.ts";
import type { Node } from "../kube/api/node.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Objects } from "./objects.ts";
import type { About, Trace } from "./trace.ts";

interface Change {
  readonly who: string;
  readonly what: string;
  readonly about: About;
}

/** Before and after; one of them is missing at a creation and at an end. */
interface Versions<T> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

/**
 * A line for every change of an object that says where a volume is to be or is: read from the store as it is committed,
 * without a request, a timer or a draw, so that a run is the same with it and without.
 */
export function traceObjects(store: ObjectStore, objects: Objects, trace: Trace): void {
  const names = new Names(objects);
  for (const [resource, describe] of Object.entries(DESCRIPTIONS)) {
    const watch = store.watch({ resource, afterRevision: store.revision }, take);
    function take(): void {
      for (let event = watch.take(); event !== undefined; event = watch.take())
        for (const { who, what, about } of describe(versionsOf(event, objects), names))
          trace.add(who, what, about);
    }
    // A watch tells of what comes once it has been asked for what there is.
    take();
  }
}

function versionsOf({ type, object, previous }: StoreEvent, objects: Objects): Versions<never> {
  const before = previous && objects.parse<never>(previous);
  return { before, after: type === "deleted" ? undefined : objects.parse<never>(object) };
}

/** What objects are called on the side of the storage system. */
class Names {
  readonly #objects: Objects;
  readonly #handles = new Map<string, string>();

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /** Also of a PersistentVolume that is gone. */
  handle(persistentVolume: string): string {
    const found = this.#objects.get("persistentvolumes", persistentVolume)?.spec?.csi?.volumeHandle;
    if (found !== undefined) this.#handles.set(persistentVolume, found);
    return found ?? this.#handles.get(persistentVolume) ?? persistentVolume;
  }
}

const DESCRIPTIONS: Readonly<Record<string, (versions: Versions<never>, names: Names) => readonly Change[]>> =
  {
    pods: describePod,
    persistentvolumeclaims: describeClaim,
    persistentvolumes: describeVolume,
    "volumeattachments.storage.k8s.io": describeAttachment,
    nodes: describeNode,
  };

function describePod({ before, after }: Versions<Pod>): readonly Change[] {
  const pod = after ?? before;
  const name = pod?.metadata.name ?? "";
  const node = pod?.spec?.nodeName;
  const claim = pod?.spec?.volumes?.find(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined)
    ?.persistentVolumeClaim?.claimName;
  const about = { pod: name, ...(claim !== undefined && { claim }), ...(node !== undefined && { node }) };
  const says = (who: string, what: string, to?: string): Change[] => [
    { who, what, about: { ...about, ...(to !== undefined && { to }) } },
  ];
  if (before === undefined) return says("workload", `pod ${name} is created`);
  if (after === undefined) return says("workload", `pod ${name} is gone`);
  const changes: Change[] = [];
  if (before.spec?.nodeName === undefined && node !== undefined)
    changes.push(...says("workload", `pod ${name} is scheduled on ${node}`, node));
  if (before.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined)
    changes.push(...says("workload", `pod ${name} is to end`, node));
  const phase = after.status?.phase;
  if (before.status?.phase !== phase && phase !== undefined && phase !== "Pending")
    changes.push(...says(node ?? "workload", `pod ${name} is ${phase}`, "workload"));
  return changes;
}

function describeClaim({ before, after }: Versions<PersistentVolumeClaim>, names: Names): readonly Change[] {
  const claim = (after ?? before)?.metadata.name ?? "";
  const says = (what: string, more: About = {}): Change[] => [
    { who: "workload", what: `claim ${claim} ${what}`, about: { claim, ...more } },
  ];
  if (before === undefined) return says("is created");
  if (after === undefined) return says("is gone");
  const changes: Change[] = [];
  const volume = after.spec?.volumeName;
  if (volume !== undefined && after.status?.phase === "Bound" && before.status?.phase !== "Bound")
    changes.push(
      ...says(`is bound to ${names.handle(volume)}`, {
        volume: names.handle(volume),
        persistentVolume: volume,
      }),
    );
  const wanted = after.spec?.resources?.requests?.["storage"];
  if (before.spec?.resources?.requests?.["storage"] !== wanted)
    changes.push(...says(`asks for ${String(wanted)}`));
  if (before.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined)
    changes.push(...says("is to go"));
  return changes;
}

function describeVolume({ before, after }: Versions<PersistentVolume>): readonly Change[] {
  const object = after ?? before;
  const persistentVolume = object?.metadata.name ?? "";
  const volume = object?.spec?.csi?.volumeHandle ?? persistentVolume;
  const claim = object?.spec?.claimRef?.name;
  const about = { volume, persistentVolume, ...(claim !== undefined && { claim }) };
  const says = (what: string): Change[] => [
    { who: "workload", what: `PersistentVolume of ${volume} ${what}`, about },
  ];
  if (before === undefined) return says(claim === undefined ? "is created" : `is created for claim ${claim}`);
  if (after === undefined) return says("is gone");
  if (before.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined)
    return says("is to go");
  return [];
}

function describeAttachment({ before, after }: Versions<VolumeAttachment>, names: Names): readonly Change[] {
  const object = after ?? before;
  const name = object?.metadata.name ?? "";
  const persistentVolume = object?.spec.source.persistentVolumeName ?? "";
  const volume = names.handle(persistentVolume);
  const node = object?.spec.nodeName ?? "";
  const about = { volume, persistentVolume, node };
  const owner = name.startsWith("csi-") ? "controller" : "workload";
  const called = `${owner === "controller" ? "VolumeAttachment" : `VolumeAttachment ${name}`} of ${volume} on ${node}`;
  const asks = (what: string): Change => ({
    who: owner,
    what: `${called} ${what}`,
    about: { ...about, to: "attacher" },
  });
  const answers = (what: string): Change => ({
    who: "attacher",
    what: `${called} ${what}`,
    about: { ...about, to: owner },
  });
  if (before === undefined) return [asks("is created")];
  if (after === undefined) return [answers("is gone")];
  const changes: Change[] = [];
  if (before.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined)
    changes.push(asks("is to go"));
  if (before.status?.attached !== after.status?.attached && after.status !== undefined)
    changes.push(answers(after.status.attached ? "is attached" : "is not attached"));
  for (const [error, verb] of [
    ["attachError", "attach"],
    ["detachError", "detach"],
  ] as const) {
    const message = after.status?.[error]?.message;
    if (message !== undefined && message !== before.status?.[error]?.message)
      changes.push(answers(`${verb} failed: ${message}`));
  }
  return changes;
}

function describeNode({ before, after }: Versions<Node>): readonly Change[] {
  const node = (after ?? before)?.metadata.name ?? "";
  if (before === undefined) return [{ who: node, what: `Node ${node} is created`, about: { node } }];
  if (after === undefined) return [{ who: "workload", what: `Node ${node} is gone`, about: { node } }];
  const attached = (version: Node) => (version.status?.volumesAttached ?? []).map(({ name }) => name);
  const inUse = (version: Node) => version.status?.volumesInUse ?? [];
  return [
    ...listed(attached(before), attached(after)).map(({ volume, verb }) => ({
      who: "controller",
      what: `volumesAttached of ${node}: ${volume} is ${verb}`,
      about: { volume, node, to: node },
    })),
    ...listed(inUse(before), inUse(after)).map(({ volume, verb }) => ({
      who: node,
      what: `volumesInUse of ${node}: ${volume} is ${verb}`,
      about: { volume, node, to: "controller" },
    })),
  ];
}

/** What came and what went between two lists. */
function listed(before: readonly string[], after: readonly string[]) {
  const handleOf = (name: string) => name.slice(name.indexOf("^") + 1);
  return [
    ...after
      .filter((name) => !before.includes(name))
      .map((name) => ({ volume: handleOf(name), verb: "added" })),
    ...before
      .filter((name) => !after.includes(name))
      .map((name) => ({ volume: handleOf(name), verb: "removed" })),
  ];
}
