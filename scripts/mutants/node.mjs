// Mutants of the node agent.
import { DRIVER_LOCK_OFF } from "./world.mjs";

const keeping = "src/node/plan-keeping.ts";

/** The kernel is asked whether a process has the volume. */
const PROCESSES_IGNORED = {
  file: keeping,
  from: 'if (finding?.kind === "free") return true;',
  to: "if (around.nowMs >= 0 || finding) return true;",
};

/** The VolumeAttachment is read from the server before a stage, and one that is being deleted is not staged. */
const ATTACHMENT_UNREAD = {
  file: "src/node/plugins/csi-lookups.ts",
  from: `if (metadata.deletionTimestamp)
    throw transient("volume attachment is being deleted", { blockedBy, kind: "detaching" });`,
  to: "if (metadata.name !== undefined) return;",
};

/** A volume of which something is mounted already is looked at anew, too. */
const UNLISTED_IGNORED = {
  file: "src/node/plan.ts",
  from: 'return attachable === "unknown" || !around.reportedInUse || around.attachedPath === undefined;',
  to: 'return attachable === "unknown";',
};

/** What a driver may be at still keeps the volume, and its opposite from being sent. */
const LATE_CALLS_OFF = [
  {
    about: "the wait for calls that got no answer",
    file: "src/node/late-calls.ts",
    from: "return late.find((call) => conflicts(call, operation, podUid));",
    to: "return late.find((call) => conflicts(call, operation, podUid) && call.untilMs < 0);",
  },
  {
    file: keeping,
    from: 'const late = held.device === "not-mounted" ? volume.late[0] : lateAgainst(volume, undo, undefined);',
    to: "const late = lateAgainst(volume, undo, undefined);",
  },
];

export const nodeMutants = [
  {
    id: "in-use-after-mount",
    promise: "a volume is in volumesInUse before it is touched, not after",
    changes: [
      {
        file: "src/node/status.ts",
        from: 'return volume && mayNeedAttach(volume) ? "in-use" : "not-in-use";',
        to: 'return volume && mayNeedAttach(volume) && (volume.held?.mounts.size ?? 0) > 0 ? "in-use" : "not-in-use";',
      },
      { file: "src/node/plan.ts", from: "if (!reportedInUse) {", to: "if (reportedInUse === undefined) {" },
      UNLISTED_IGNORED,
    ],
  },
  {
    id: "in-use-not-confirmed",
    promise: "a volume is not touched before the server has confirmed that it is in volumesInUse",
    profile: "lossy",
    changes: [
      { file: "src/node/plan.ts", from: "if (!reportedInUse) {", to: "if (reportedInUse === undefined) {" },
      UNLISTED_IGNORED,
      ATTACHMENT_UNREAD,
    ],
  },
  {
    id: "staged-unlisted",
    promise:
      "a volume is staged only while the node lists it as attached and its VolumeAttachment, read live, is attached",
    profile: "lossy",
    changes: [
      {
        file: "src/node/plan.ts",
        from: "if (attachedPath === undefined) {",
        to: "if (nodeName === undefined) {",
      },
      {
        file: "src/node/plan.ts",
        from: 'draft.act({ kind: "mark-attached", devicePath: attachedPath });',
        to: 'draft.act({ kind: "mark-attached", devicePath: attachedPath ?? "" });',
      },
      UNLISTED_IGNORED,
      ATTACHMENT_UNREAD,
    ],
  },
  {
    id: "processes-ignored",
    promise: "nothing is taken from a pod, nor let go, before the kernel said that no process has it",
    changes: [PROCESSES_IGNORED],
  },
  {
    id: "second-pod-beside-first",
    promise: "what leaves a pod leaves it before another pod gets the volume",
    changes: [
      {
        file: "src/node/plan.ts",
        from: "if (busy || (shared && leaving !== undefined)) {",
        to: "if (busy) {",
      },
      {
        file: "src/node/plan.ts",
        from: "return [...(held?.mounts.keys() ?? [])].find((other) => other !== podUid);",
        to: "return held === undefined ? podUid : undefined;",
      },
    ],
  },
  {
    id: "unmounted-before-pods-known",
    promise: "nothing is taken down before all pods of the node are known",
    profile: "restarts",
    changes: [
      {
        file: "src/node/manager.ts",
        from: "await caches.pods.whenSynced(signal);\n",
        to: "",
      },
      {
        file: keeping,
        from: "  if (!around.readyToUnmount) {\n    draft.wait(podUid, waitForSync(volume, around));\n    return;\n  }\n  const adopter",
        to: '  if (!around.readyToUnmount) {\n    if (volume.running.length === 0) draft.act({ kind: "unmount", mount });\n    return;\n  }\n  const adopter',
      },
    ],
  },
  {
    id: "unfollowed-pod-unmounted",
    promise: "nothing is taken from a live pod of which a volume cannot be followed: it may be this one",
    profile: "agents",
    changes: [
      {
        file: keeping,
        from: "    draft.wait(podUid, waitForPod(volume, podUid, unresolved));\n",
        to: '    if (volume.running.length === 0) draft.act({ kind: "unmount", mount });\n',
      },
    ],
  },
  {
    id: "unanswered-stage-forgotten",
    promise: "what may be there is taken down like what is there",
    profile: "lost-answers",
    without: LATE_CALLS_OFF,
    changes: [
      {
        file: "src/node/actual.ts",
        from: 'if (outcome === "uncertain" && held.device === "not-mounted") held.device = "uncertain";',
        to: "",
      },
      {
        file: "src/node/actual.ts",
        from: 'if (!mount && error.outcome === "uncertain")\n',
        to: 'if (!mount && error.outcome === "final")\n',
      },
    ],
  },
  {
    id: "late-call-ignored",
    promise: "a call that a driver may be at still keeps the volume in use, and its opposite is not sent",
    profile: "slow-calls",
    without: [DRIVER_LOCK_OFF],
    changes: [...LATE_CALLS_OFF],
  },
  {
    id: "forgotten-while-staged",
    promise: "a volume stays in volumesInUse until nothing of it is mounted",
    changes: [
      {
        file: keeping,
        from: 'if (held.device === "not-mounted") {\n    planForget',
        to: 'if (held.device !== "uncertain") {\n    planForget',
      },
    ],
  },
  {
    id: "late-in-use-list-accepted",
    promise: "a list of volumesInUse that arrives behind another is refused",
    profile: "late-agents",
    changes: [
      {
        file: "src/node/in-use.ts",
        from: "      metadata: { resourceVersion },\n      status",
        to: "      status",
      },
    ],
  },
  {
    id: "journal-not-written",
    promise: "what a step may leave behind is on disk before the step begins, so that a crash finds it again",
    profile: "agents",
    changes: [
      {
        file: "src/node/restart/journal.ts",
        from: "intend: write,",
        to: "intend: async () => undefined,",
      },
      {
        file: "src/node/restart/journal.ts",
        from: "await files.writeDurable(path, text, 0o600);",
        to: "",
      },
      {
        file: "src/node/plugins/csi-device.ts",
        from: "    await writeRecord(files, directory, {",
        to: "    if (handle === '') await writeRecord(files, directory, {",
      },
    ],
  },
  {
    id: "mounts-not-recovered",
    promise: "what is mounted is found again after a start, whatever the API says",
    profile: "restarts",
    changes: [
      {
        file: "src/node/manager.ts",
        from: "state.found = await reconstruct(context, (problem) => void (state.problem = problem));",
        to: "state.found = { strays: [] };",
      },
    ],
  },
  {
    id: "in-use-written-unsynced",
    promise: "volumesInUse is left as it was found until disk, pods and the node's status were read",
    profile: "agents",
    changes: [
      { file: "src/node/manager.ts", from: "ready: () => state.synced,", to: "ready: () => true," },
      {
        file: "src/node/manager.ts",
        from: "      state.found = await reconstruct(context,",
        to: "      const early = events.listen();\n      void inUse.run(stop.signal);\n      await clock.sleep(2_000);\n      early();\n      state.found = await reconstruct(context,",
      },
    ],
  },
  {
    id: "replaced-volume-taken",
    of: "data safety 16",
    promise: "what a live pod has mounted stays until the pod goes, whatever its claim leads to by now",
    profile: "agents",
    changes: [
      {
        file: "src/node/replaced.ts",
        from: "    if (pinnedNames(volume, podUid).includes(outerName)) return volume;",
        to: "    if (outerName === undefined) return volume;",
      },
      { file: keeping, from: "if (around.isLive(podUid)) {", to: "if (podUid === undefined) {" },
      PROCESSES_IGNORED,
    ],
  },
  {
    id: "published-unstaged",
    promise: "a volume is staged once a node before it is published to a pod",
    changes: [
      {
        file: "src/node/plan.ts",
        from: 'if (hasDeviceStep(volume, want, traits) && held.device !== "mounted" && !usable)',
        to: 'if (hasDeviceStep(volume, want, traits) && held.device === "uncertain" && !usable)',
      },
    ],
  },
];
