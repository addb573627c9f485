// Mutants of the attach/detach controller. `without` is another line of defence that has to be out as well; the control runs
// without it, too.
import { GUARD_OFF, OWN_TWINS_OFF } from "./attacher.mjs";

const plan = "src/attach-detach/plan.ts";

/** The node is read from the server before a detach. */
const LIVE_CHECK_OFF = {
  file: "src/attach-detach/detach.ts",
  from: 'return force && mayForce(force, live) ? { kind: "go", force } : { kind: "not-now", why: "in-use" };',
  to: 'return { kind: "go", force };',
};

const LIVE_LIST_OFF = {
  file: "src/attach-detach/detach.ts",
  from: "if (listsVolume(live, volume.name))\n    throw",
  to: "if (live.metadata.name === undefined)\n    throw",
};

/** The server has confirmed that the node no longer lists the volume. */
const UNLISTING_UNCONFIRMED = {
  about: "the wait for the server to confirm that the volume is unlisted",
  file: plan,
  from: "if (hold.listed || mayBeListed(placement))",
  to: "if (hold.listed)",
};

/** The work of a term ends in the moment in which its lease is lost. */
const TERM_ENDS_LATE = [
  {
    about: "the end of a leader's work when its lease is lost, which comes 10 s later",
    file: "src/processes/leader.ts",
    from: "runTerm(work, { signal: termSignal, mayAct",
    to: "runTerm(work, { signal: endsLate(termSignal, deps.clock), mayAct",
  },
  {
    file: "src/processes/leader.ts",
    from: "/** Work that returns before",
    to: "function endsLate(signal: AbortSignal, clock: ElectorDeps['clock']): AbortSignal {\n  const late = new AbortController();\n  signal.addEventListener('abort', () => void clock.after(10_000, () => late.abort(signal.reason)));\n  return late.signal;\n}\n\n/** Work that returns before",
  },
];

export const controllerMutants = [
  {
    id: "multi-attach-unchecked",
    promise: "a volume that only one node may have is attached to none while another holds it",
    profile: "alone",
    without: [GUARD_OFF],
    changes: [
      {
        file: plan,
        from: "if (holders.length > 0 || traced.length > 0) return waitForHolders(",
        to: "if (holders.length > 99) return waitForHolders(",
      },
    ],
  },
  {
    id: "uncertain-holder-ignored",
    of: "W-1",
    promise: "a node that perhaps has the volume keeps it from all others",
    profile: "alone",
    without: [GUARD_OFF],
    changes: [
      {
        file: "src/attach-detach/holders.ts",
        from: "return hold !== undefined || foreign.length > 0;",
        to: "return hold?.confirmed === true || foreign.length > 0;",
      },
    ],
  },
  {
    id: "foreign-holder-ignored",
    promise: "what somebody else attached counts as attached",
    profile: "hands",
    without: [
      {
        about: "the attacher's guard against attachments made by hand",
        file: "src/attacher/plan.ts",
        from: "const [holder] = holders;",
        to: 'const [holder] = holders.filter((one) => !one.attachment.startsWith("by-hand-"));',
      },
    ],
    changes: [
      {
        file: "src/attach-detach/holders.ts",
        from: "return hold !== undefined || foreign.length > 0;",
        to: "return hold !== undefined;",
      },
    ],
  },
  {
    id: "foreign-detached-under",
    promise: "what somebody else attached is not detached from under them",
    profile: "hands",
    without: [OWN_TWINS_OFF],
    changes: [
      {
        file: plan,
        from: "if (placement.foreign.length > 0) return waitForForeign(placement);\n  for (",
        to: "for (",
      },
      {
        file: "src/attach-detach/detach.ts",
        from: "if (wantedTwin(placement) || placement.foreign.length > 0)",
        to: "if (wantedTwin(placement))",
      },
    ],
  },
  {
    id: "adopted-by-name",
    of: "W-7",
    promise: "a VolumeAttachment is what its content says, not what its name says",
    profile: "disguised",
    changes: [
      {
        file: "src/volumes/attachment-identity.ts",
        from: "if (attacher !== source.driver || nodeName !== node) return false;",
        to: "if (attacher === source.driver) return true;",
      },
    ],
  },
  {
    id: "handle-with-caret",
    of: "W-8",
    promise: "a volume whose handle has a ^ is detached like any other",
    changes: [
      {
        file: "src/volumes/names.ts",
        from: "if (at < 1 || at === pluginVolume.length - 1) return undefined;",
        to: 'if (at < 1 || pluginVolume.split("^").length !== 2) return undefined;',
      },
    ],
  },
  {
    id: "in-use-ignored",
    promise: "a volume in use on a healthy node is left where it is",
    changes: [
      {
        file: plan,
        from: "const mounted = isMounted(placement);\n  const claimant",
        to: "const mounted = false;\n  const claimant",
      },
      LIVE_CHECK_OFF,
    ],
  },
  {
    id: "live-check-skipped",
    promise: "right before a detach the node itself is asked whether it lists or uses the volume",
    profile: "lossy",
    without: [UNLISTING_UNCONFIRMED],
    changes: [LIVE_LIST_OFF, LIVE_CHECK_OFF],
  },
  {
    id: "force-on-healthy-node",
    of: "W-2",
    promise: "no time is long enough to take a volume in use from a healthy node",
    profile: "stuck",
    changes: [
      {
        file: plan,
        from: "return isOutOfService(node) || (expiredMs !== undefined && !isHealthy(node));",
        to: "return isOutOfService(node) || expiredMs !== undefined;",
      },
    ],
  },
  {
    id: "force-by-cache",
    of: "W-3",
    promise: "health and taint of a node are read from the server before a force",
    profile: "returning",
    changes: [
      {
        file: "src/attach-detach/detach.ts",
        from: "return force && mayForce(force, live) ?",
        to: "return force ?",
      },
    ],
  },
  {
    id: "force-too-soon",
    promise: "a volume in use on a silent node is forced off only when the time of its policy is over",
    profile: "silent",
    changes: [
      {
        file: plan,
        from: 'return forceRule.kind === "after" && nowMs - (unwantedSinceMs ?? nowMs) > forceRule.ms;',
        to: 'return forceRule.kind === "after" && nowMs - (unwantedSinceMs ?? nowMs) > 30_000;',
      },
    ],
  },
  {
    id: "timer-not-restarted",
    promise: "the time until a force counts from the last pod, not from the first",
    profile: "silent",
    changes: [
      {
        file: "src/attach-detach/desired.ts",
        from: "if (hold) hold.unwantedSinceMs = undefined;",
        to: "",
      },
      {
        file: "src/attach-detach/actual.ts",
        from: "if (placement.want) hold.unwantedSinceMs = undefined;",
        to: "",
      },
    ],
  },
  {
    id: "node-gone-is-free",
    promise: "a volume that a deleted Node last reported in use may still be in use there",
    profile: "nodes",
    changes: [
      {
        file: "src/attach-detach/node-view.ts",
        from: "return node.assumed.has(placement) || mayUse(node, volume.name);",
        to: "return node.assumed.has(placement) || (node.exists && mayUse(node, volume.name));",
      },
    ],
  },
  {
    id: "detach-while-listed",
    promise: "a volume leaves volumesAttached, and the server has said so, before its detach begins",
    changes: [
      { ...UNLISTING_UNCONFIRMED, to: "if (hold.listed && hold.devicePath === undefined)" },
      LIVE_LIST_OFF,
    ],
  },
  {
    id: "verify-forgets",
    of: "W-4",
    promise: "only the absence of a VolumeAttachment proves that the volume is off the node, not an error",
    profile: "forgetful",
    without: [GUARD_OFF],
    changes: [
      {
        file: "src/attach-detach/csi-plugin.ts",
        from: "const attachment = watch.current(name) ?? (await client.get(volumeAttachments, { name }));\n    if (source &&",
        to: "const attachment = await client.get(volumeAttachments, { name });\n    if (source &&",
      },
      {
        file: "src/attach-detach/csi-plugin.ts",
        from: 'return isKubeError(error, "NotFound") ? "not-attached" : "unknown";',
        to: 'return "not-attached";',
      },
      {
        file: "src/attach-detach/verify.ts",
        from: "if (isSaidAttached(context, placement)) return undefined;",
        to: "",
      },
      {
        file: "src/attach-detach/verify.ts",
        from: "if (attachmentOf(context, placement))\n    markUncertain(context, placement, { spec: hold?.spec, nowMs: clock.now() });\n  else markDetached(context, placement);",
        to: "markDetached(context, placement);",
      },
    ],
  },
  {
    id: "uncertain-listed",
    of: "W-5",
    promise: "a volume that is perhaps attached is not in volumesAttached",
    profile: "drivers",
    changes: [
      {
        file: "src/attach-detach/actual.ts",
        from: 'hold.devicePath = "";\n  hold.listed = false;\n  hold.proven = false;',
        to: 'hold.devicePath = "";\n  hold.listed = true;\n  hold.proven = true;',
      },
    ],
  },
  {
    id: "late-list-accepted",
    of: "W-6",
    promise: "a list of volumesAttached that arrives behind another is refused",
    profile: "unheard",
    changes: [
      {
        file: "src/attach-detach/node-status.ts",
        from: "value: { metadata: { resourceVersion }, status } };",
        to: "value: { status } };",
      },
    ],
  },
  {
    id: "late-create-forgotten",
    promise: "a VolumeAttachment whose create got no answer may still appear, and is waited for",
    profile: "hasty",
    without: [GUARD_OFF],
    changes: [
      {
        file: "src/attach-detach/csi-plugin.ts",
        from: "if (signal.aborted || (isKubeError(error) && error.outcomeUnknown)) doubts.add(name);",
        to: "",
      },
      {
        file: "src/attach-detach/attach.ts",
        from: 'if (code !== "NoPlugin" && code !== "Mismatch" && code !== "NotLeading")',
        to: 'if (code !== "NoPlugin" && code !== "Mismatch" && code !== "NotLeading" && code !== "ApiFailed")',
      },
    ],
  },
  {
    id: "deleted-by-name",
    promise: "a VolumeAttachment is deleted by its uid, so that a late DELETE cannot hit its successor",
    profile: "late",
    changes: [
      {
        file: "src/attach-detach/csi-plugin.ts",
        from: "await client.delete(volumeAttachments, { name }, { signal, preconditions });",
        to: "await client.delete(volumeAttachments, { name }, { signal });",
      },
    ],
  },
  {
    id: "attachments-not-recovered",
    promise: "a leader counts what its predecessor's VolumeAttachments may have attached",
    profile: "leaders",
    without: [GUARD_OFF],
    changes: [
      {
        file: "src/attach-detach/recover.ts",
        from: 'onAttachment(context, { kind: "added", key: keyOf(object), object }),',
        to: "void object,",
      },
    ],
  },
  {
    id: "not-fenced",
    promise: "a leader whose lease may be another's by now writes nothing",
    profile: "thawed",
    without: [GUARD_OFF, ...TERM_ENDS_LATE],
    changes: [
      {
        file: "src/processes/leader.ts",
        from: "mayAct: () => !termSignal.aborted && elector.isLeader() });",
        to: "mayAct: () => true });",
      },
    ],
  },
  {
    id: "renamed-holder-ignored",
    of: "data safety 8",
    promise: "a disk behind a PersistentVolume of another name is the same disk, and its holder counts",
    profile: "renamed",
    without: [GUARD_OFF],
    changes: [
      {
        file: plan,
        from: "if (holders.length > 0 || traced.length > 0) return waitForHolders(",
        to: "if (holders.length > 0) return waitForHolders(",
      },
    ],
  },
  {
    id: "stale-timer-counts",
    of: "data safety 9",
    promise: "the time that an earlier leader saw a volume wait counts only while no pod came in between",
    profile: "timers",
    changes: [
      {
        file: "src/attach-detach/detach-timers.ts",
        from: "for (const claimant of waiting) if (!mayHaveUsed(history, claimant)) credit(context, claimant);",
        to: "for (const claimant of waiting) credit(context, claimant);",
      },
      {
        file: "src/attach-detach/detach-timers.ts",
        from: "if (kept.uid !== attachmentUid(context, placement)) return [];",
        to: "",
      },
      {
        file: "src/attach-detach/detach-timers.ts",
        from: 'return rule.kind === "after" ? Math.max(0, rule.ms - START_MS) : Infinity;',
        to: 'return rule.kind === "after" ? rule.ms : Infinity;',
      },
      // A pod that came back leaves the entry where it is.
      {
        file: "src/attach-detach/detach-timers.ts",
        from: "const same = written !== undefined && isSame(written.entries, entries);",
        to: "const same = entries.length === 0 || (written !== undefined && isSame(written.entries, entries));",
      },
    ],
  },
  {
    id: "claimant-ignored",
    of: "data safety 10",
    promise: "a disk stays for the pod that runs on it, although its claim leads elsewhere by now",
    profile: "replaced",
    changes: [
      {
        file: plan,
        from: "const claimant = mounted ? around.claimant() : undefined;",
        to: "const claimant = undefined;",
      },
    ],
  },
  {
    id: "not-understood-detached",
    promise: "what cannot be understood is not detached",
    profile: "replaced",
    changes: [
      {
        file: plan,
        from: "if (!mayBeUsedBy(hold.spec, resolution)) continue;",
        to: "if (resolution.why !== undefined) continue;",
      },
      {
        file: plan,
        from: "const claimant = mounted ? around.claimant() : undefined;",
        to: "const claimant = undefined;",
      },
    ],
  },
];
