// Mutants of the attacher.
import { DRIVER_LOCK_OFF } from "./world.mjs";

const plan = "src/attacher/plan.ts";

/** A volume for one node is not published on a second. */
export const GUARD_OFF = {
  about: "the attacher's guard of single-node volumes",
  file: plan,
  from: 'if (named.kind === "volume") refuseSecondNode(named.name, capability, view.holders);',
  to: "",
};

/** A detach leaves the volume on the node for another attachment there. */
const TWINS_OFF = {
  file: plan,
  from: "const twins = view.twins.filter(({ detaching, held }) => held && !detaching);",
  to: "const twins = view.twins.filter(() => false);",
};

/** The same, of an attachment that the controller made. */
export const OWN_TWINS_OFF = {
  about: "the attacher's look for other attachments of the node",
  file: plan,
  from: TWINS_OFF.from,
  to: 'const twins = view.twins.filter(({ detaching, held }) => held && !detaching && !attachment.metadata.name?.startsWith("csi-"));',
};

export const attacherMutants = [
  {
    id: "single-node-guard-off",
    promise:
      "two attachments of one single-node volume, however they came to be, do not both reach the driver",
    profile: "hands",
    changes: [GUARD_OFF],
  },
  {
    id: "finalizer-before-unpublish",
    promise: "the finalizer of a VolumeAttachment goes only after an unpublish succeeded",
    changes: [
      {
        file: plan,
        from: 'if (done.unpublished || typeof done.twins === "object") return planRelease(view, finalizer);',
        to: "if (held || done.released) return planRelease(view, finalizer);",
      },
    ],
  },
  {
    id: "published-without-finalizer",
    promise: "nothing is published before the VolumeAttachment carries the finalizer",
    changes: [
      {
        file: plan,
        from: 'if (operations) return { kind: "hold", operations };',
        to: 'if (operations === null) return { kind: "hold", operations };',
      },
    ],
  },
  {
    id: "unattached-not-unpublished",
    promise: "an attachment that is not called attached may be published all the same, and is unpublished",
    profile: "unanswered",
    changes: [
      {
        file: plan,
        from: 'if (done.unpublished || typeof done.twins === "object") return planRelease(view, finalizer);',
        to: 'if (done.unpublished || typeof done.twins === "object" || (held && !attachment.status?.attached)) return planRelease(view, finalizer);',
      },
    ],
  },
  {
    id: "failed-unpublish-believed",
    promise: "an unpublish that failed or got no answer is tried again before the volume is let go",
    profile: "drivers",
    changes: [
      {
        file: "src/attacher/publish.ts",
        from: "await driver.unpublish(step.request, callOptions(step));\n        pass.note({ unpublished: true });",
        to: "await driver.unpublish(step.request, callOptions(step)).catch(() => undefined);\n        pass.note({ unpublished: true });",
      },
    ],
  },
  {
    id: "failed-publish-believed",
    promise: "a volume is called attached only after its publish succeeded",
    profile: "drivers",
    changes: [
      {
        file: "src/attacher/publish.ts",
        from: "pass.note({ published: await driver.publish(step.request, callOptions(step)) });",
        to: "pass.note({ published: await driver.publish(step.request, callOptions(step)).catch(() => ({})) });",
      },
    ],
  },
  {
    id: "unpublished-by-present-node-id",
    promise:
      "a volume is unpublished from the node id it was published on, whatever the driver calls the node today",
    profile: "drivers",
    changes: [
      {
        file: "src/attacher/node-id.ts",
        from: "const id = recordedNodeId({ metadata }) ?? registeredNodeId(node, driver);",
        to: "const id = registeredNodeId(node, driver) ?? recordedNodeId({ metadata });",
      },
    ],
  },
  {
    id: "earlier-node-id-left",
    promise: "what an unanswered publish left under an earlier node id is withdrawn before the next publish",
    profile: "unanswered",
    changes: [
      {
        file: plan,
        from: "if (earlierId !== undefined && earlierId !== nodeId && done.withdrawn !== earlierId) {",
        to: "if (earlierId !== undefined && earlierId !== nodeId && nodeId === undefined) {",
      },
    ],
  },
  {
    id: "twin-unpublished",
    promise: "a volume stays on its node for the other attachment there",
    profile: "hands",
    changes: [TWINS_OFF],
  },
  {
    id: "published-while-twin-detaches",
    promise:
      "an attachment is published after the detach of another of the same volume and node, not beside it",
    profile: "twins",
    without: [
      DRIVER_LOCK_OFF,
      {
        about: "the controller's wait for the end of a VolumeAttachment made by hand",
        file: "src/attach-detach/plan.ts",
        from: "  if (placement.foreign.some(({ deleting }) => deleting)) return waitForForeign(placement);\n  if (around.attachment",
        to: "  if (around.attachment",
      },
    ],
    changes: [{ file: plan, from: "  refuseBeingDetached(view.twins);\n", to: "" }],
  },
  {
    id: "detached-by-present-volume",
    of: "data safety 12",
    promise: "a detach goes by what was attached, not by what the PersistentVolume of that name is today",
    profile: "objects",
    changes: [
      {
        file: "src/attacher/identity.ts",
        from: 'if (recorded === handle) return "volume";',
        to: 'if (recorded !== "") return "volume";',
      },
    ],
  },
];
