import { describe, expect, test } from "vitest";
import { claim, OURS, ref, storageClass, volume } from "../objects.testing.ts";
import {
  PROVISIONED_BY,
  PROVISIONER_FINALIZER,
  PROVISIONING_FINALIZER,
  SELECTED_NODE,
  STORAGE_PROVISIONER,
} from "../names.ts";
import { planProvision, type ProvisionView } from "./plan.ts";
import { planReclaim } from "./plan-reclaim.ts";

const annotations = { [STORAGE_PROVISIONER]: OURS };
const asked = claim({ metadata: { annotations } });
const HELD = { annotations, finalizers: [PROVISIONING_FINALIZER] };
const ANOTHERS = { annotations: { [STORAGE_PROVISIONER]: "x" }, finalizers: [PROVISIONING_FINALIZER] };
const GOING = { ...HELD, deletionTimestamp: "now" };
const LATER = storageClass({ volumeBindingMode: "WaitForFirstConsumer" });
const made = volume({ metadata: { name: "pvc-u1" }, spec: { claimRef: ref() } });

function verdict(members: Partial<ProvisionView>): string {
  const { action, waitingFor } = planProvision({
    claim: asked,
    driver: OURS,
    storageClass: storageClass(),
    volume: undefined,
    certainlyNone: false,
    ...members,
  });
  return action?.kind ?? waitingFor?.reason ?? "nothing";
}

describe("a claim that wants a volume of the driver", () => {
  const rows: readonly (readonly [string, Partial<ProvisionView>, string])[] = [
    ["asked for", {}, "provision"],
    ["not asked for yet", { claim: claim() }, "nothing"],
    [
      "asked of another",
      { claim: claim({ metadata: { annotations: { [STORAGE_PROVISIONER]: "x" } } }) },
      "nothing",
    ],
    ["of a class that is gone", { storageClass: undefined }, "class-missing"],
    ["of a class that has become another's", { storageClass: storageClass({ provisioner: "x" }) }, "nothing"],
    ["waiting for its first pod", { storageClass: LATER }, "first-consumer"],
    [
      "with a node chosen",
      {
        storageClass: LATER,
        claim: claim({ metadata: { annotations: { ...annotations, [SELECTED_NODE]: "n" } } }),
      },
      "provision",
    ],
    [
      "to be filled by somebody else",
      {
        claim: claim({
          metadata: { annotations },
          spec: { dataSource: { apiGroup: "x", kind: "X", name: "x" } },
        }),
      },
      "provisioner",
    ],
    ["made", { volume: made }, "nothing"],
    ["made, still held", { claim: claim({ metadata: HELD }), volume: made }, "release"],
    [
      "whose volume's name is taken",
      { volume: volume({ spec: { claimRef: ref({ uid: "x" }) } }) },
      "provision",
    ],
    [
      "bound elsewhere",
      { claim: claim({ metadata: { annotations }, spec: { volumeName: "w" } }) },
      "nothing",
    ],
    // From here on the driver was asked, and nobody knows what it did.
    ["bound elsewhere, held", { claim: claim({ metadata: HELD, spec: { volumeName: "w" } }) }, "settle"],
    ["going, held", { claim: claim({ metadata: GOING }) }, "settle"],
    ["going, held, made", { claim: claim({ metadata: GOING }), volume: made }, "release"],
    [
      "going, held, certainly not made",
      { claim: claim({ metadata: GOING }), certainlyNone: true },
      "release",
    ],
    [
      "going, held, class gone",
      { claim: claim({ metadata: GOING }), storageClass: undefined },
      "class-missing",
    ],
    ["going, held, no node any more", { claim: claim({ metadata: GOING }), storageClass: LATER }, "settle"],
    // The finalizer does not say who put it on.
    [
      "going, held for another",
      { claim: claim({ metadata: { ...ANOTHERS, deletionTimestamp: "now" } }) },
      "nothing",
    ],
    [
      "bound elsewhere, held for another",
      { claim: claim({ metadata: ANOTHERS, spec: { volumeName: "w" } }) },
      "nothing",
    ],
    [
      "going, held, its class another's, what it asked for lost",
      {
        claim: claim({ metadata: { ...GOING, annotations: {} } }),
        storageClass: storageClass({ provisioner: "x" }),
      },
      "nothing",
    ],
    [
      "going, held, what it asked for lost",
      { claim: claim({ metadata: { ...GOING, annotations: {} } }) },
      "settle",
    ],
    [
      "going, never held",
      { claim: claim({ metadata: { annotations, deletionTimestamp: "now" } }) },
      "nothing",
    ],
  ];
  for (const [name, members, expected] of rows) {
    test(`${name}: ${expected}`, () => expect(verdict(members)).toBe(expected));
  }
});

describe("a volume of the driver", () => {
  const by = { [PROVISIONED_BY]: OURS };
  const held = { annotations: by, finalizers: [PROVISIONER_FINALIZER] };
  const going = { ...held, deletionTimestamp: "now" };
  const [DELETE, RETAIN] = ["Delete", "Retain"] as const;
  const rows = [
    // policy, phase, metadata, attachments
    [DELETE, "Bound", held, 0, "nothing"],
    [DELETE, "Bound", going, 0, "nothing"], // protected until its claim is gone
    [DELETE, "Released", held, 0, "condemn"],
    [DELETE, "Failed", held, 0, "condemn"],
    [DELETE, "Released", held, 1, "still-attached"],
    [DELETE, "Released", going, 1, "still-attached"],
    [DELETE, "Released", { annotations: by }, 0, "hold"],
    [DELETE, "Released", going, 0, "delete-volume"],
    [DELETE, "Failed", going, 0, "delete-volume"],
    [DELETE, "Available", held, 0, "nothing"],
    [DELETE, "Available", going, 0, "delete-volume"], // never bound, deleted by a person
    [DELETE, "Released", { annotations: by, deletionTimestamp: "now" }, 0, "nothing"],
    [RETAIN, "Released", held, 0, "nothing"],
    [RETAIN, "Released", going, 0, "release"],
    [DELETE, "Released", { finalizers: [PROVISIONER_FINALIZER] }, 0, "nothing"], // nobody says who made it
    [DELETE, "Released", { annotations: { [PROVISIONED_BY]: "x" } }, 0, "nothing"],
  ] as const;
  for (const [policy, phase, metadata, attachments, expected] of rows) {
    test(`${policy}, ${phase}, ${Object.keys(metadata).join(" ")}, ${attachments} attached: ${expected}`, () => {
      const one = volume({
        metadata: { ...metadata, finalizers: [...("finalizers" in metadata ? metadata.finalizers : [])] },
        spec: { persistentVolumeReclaimPolicy: policy },
        status: { phase },
      });

      const { action, waitingFor } = planReclaim({ volume: one, driver: OURS, attachments });

      expect(action?.kind ?? waitingFor?.reason ?? "nothing").toBe(expected);
    });
  }
});
