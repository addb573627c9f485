import { describe, expect, test } from "vitest";
import { claim, OURS, ref, storageClass, volume } from "../objects.testing.ts";
import {
  BIND_COMPLETED,
  BOUND_BY_CONTROLLER,
  PROVISIONED_BY,
  SELECTED_NODE,
  STORAGE_PROVISIONER,
  STORAGE_PROVISIONER_BETA,
} from "../names.ts";
import { nextBindStep } from "./bind.ts";
import { planClaim, type ClaimView } from "./plan-claim.ts";
import { planVolume } from "./plan-volume.ts";

const completed = { annotations: { [BIND_COMPLETED]: "yes" } };

function view(members: Partial<ClaimView> = {}): ClaimView {
  return {
    claim: claim(),
    volume: undefined,
    storageClass: storageClass(),
    defaultClass: undefined,
    find: () => undefined,
    ...members,
  };
}

/** What is done and what is waited for, in two words. */
function verdict(members: Partial<ClaimView>): string {
  const { action, waitingFor, tell } = planClaim(view(members));
  return [action?.kind, waitingFor?.reason, tell?.reason].filter(Boolean).join(" ");
}

describe("a claim that is bound", () => {
  const bound = claim({ metadata: completed, spec: { volumeName: "v" }, status: { phase: "Bound" } });

  test("stays bound, also to a volume that no longer names it", () => {
    expect(verdict({ claim: bound, volume: volume({ spec: { claimRef: ref() } }) })).toBe("bind");
    expect(verdict({ claim: bound, volume: volume() })).toBe("bind");
  });

  test("is lost with its volume, with the reference, or to another claim; said once", () => {
    const lost = claim({ metadata: completed, spec: { volumeName: "v" }, status: { phase: "Lost" } });

    expect(verdict({ claim: bound })).toBe("lose lost ClaimLost");
    expect(verdict({ claim: claim({ metadata: completed }) })).toBe("lose lost ClaimLost");
    expect(verdict({ claim: bound, volume: volume({ spec: { claimRef: ref({ uid: "other" }) } }) })).toBe(
      "lose lost ClaimMisbound",
    );
    expect(verdict({ claim: lost })).toBe("lost");
  });
});

describe("a claim that names a volume", () => {
  const named = claim({ spec: { volumeName: "v" } });

  test("gets it, waits for it, or says why not", () => {
    expect(verdict({ claim: named, volume: volume() })).toBe("bind");
    expect(verdict({ claim: named, volume: volume({ spec: { claimRef: ref({ uid: undefined }) } }) })).toBe(
      "bind",
    );
    expect(verdict({ claim: named })).toBe("volume-missing");
    expect(verdict({ claim: named, volume: volume({ spec: { claimRef: ref({ name: "other" }) } }) })).toBe(
      "volume-taken FailedBinding",
    );
    expect(verdict({ claim: named, volume: volume({ spec: { storageClassName: "x" } }) })).toBe(
      "volume-mismatch VolumeMismatch",
    );
  });
});

describe("a claim that names none", () => {
  test("takes what is found, whatever else could be done", () => {
    expect(verdict({ find: () => volume() })).toBe("bind");
  });

  test("is given the default class where it chose none, and none where it chose none on purpose", () => {
    const noChoice = claim();
    delete noChoice.spec?.storageClassName;
    const none = { storageClass: undefined, defaultClass: storageClass() };

    expect(verdict({ claim: noChoice, ...none })).toBe("change");
    expect(verdict({ claim: claim({ spec: { storageClassName: "" } }), ...none })).toBe(
      "no-volume FailedBinding",
    );
  });

  test("waits for its first pod where the class says so, and looks only at what was promised", () => {
    const later = storageClass({ volumeBindingMode: "WaitForFirstConsumer" });
    const asked: boolean[] = [];
    const find: ClaimView["find"] = ({ onlyPromised }) => void asked.push(onlyPromised);
    const chosen = claim({ metadata: { annotations: { [SELECTED_NODE]: "n" } } });

    expect(verdict({ storageClass: later, find })).toBe("first-consumer WaitForFirstConsumer");
    expect(verdict({ storageClass: later, find, claim: chosen })).toBe("change");
    expect(asked).toEqual([true, true]);
  });

  test("asks the class's provisioner once, then waits for it", () => {
    const annotations = { [STORAGE_PROVISIONER]: OURS, [STORAGE_PROVISIONER_BETA]: OURS };

    expect(planClaim(view()).action).toEqual({ kind: "change", change: { metadata: { annotations } } });
    expect(verdict({ claim: claim({ metadata: { annotations } }) })).toBe("provisioner ExternalProvisioning");
  });

  test("a class that is missing, or that makes nothing, is said", () => {
    const byHand = storageClass({ provisioner: "kubernetes.io/no-provisioner" });

    expect(verdict({ storageClass: undefined })).toBe("class-missing ProvisioningFailed");
    expect(verdict({ storageClass: byHand })).toBe("no-volume FailedBinding");
  });

  test("that is being deleted is given nothing", () => {
    expect(verdict({ claim: claim({ metadata: { deletionTimestamp: "now" } }), find: () => volume() })).toBe(
      "",
    );
  });
});

describe("the writes of a bind", () => {
  test("volume, its phase, claim, its phase; then nothing", () => {
    const mine = claim({ metadata: completed, spec: { volumeName: "v" } });
    const named = volume({ spec: { claimRef: ref() } });
    const phased = volume({ spec: { claimRef: ref() }, status: { phase: "Bound" } });

    expect(nextBindStep(volume(), claim())?.kind).toBe("volume");
    expect(nextBindStep(named, claim())?.kind).toBe("volume-status");
    expect(nextBindStep(phased, claim())?.kind).toBe("claim");
    expect(nextBindStep(phased, mine)).toEqual({
      kind: "claim-status",
      change: { status: { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } } },
    });
    expect(nextBindStep(phased, { ...mine, status: { phase: "Bound" } })).toBeUndefined();
  });

  test("only what the binder chose is marked as its choice", () => {
    const text = (...pair: Parameters<typeof nextBindStep>) => JSON.stringify(nextBindStep(...pair));
    const promised = volume({ spec: { claimRef: ref({ uid: undefined }) } });
    const phased = volume({ spec: { claimRef: ref() }, status: { phase: "Bound" } });

    expect(text(volume(), claim())).toContain(BOUND_BY_CONTROLLER);
    expect(text(promised, claim())).not.toContain(BOUND_BY_CONTROLLER);
    expect(text(phased, claim())).toContain(BOUND_BY_CONTROLLER);
    expect(text(phased, claim({ spec: { volumeName: "v" } }))).not.toContain(BOUND_BY_CONTROLLER);
  });
});

describe("a volume", () => {
  const mine = volume({ spec: { claimRef: ref() }, status: { phase: "Bound" } });
  const owner = claim({ spec: { volumeName: "v" } });
  const phaseAfter = (...[of]: Parameters<typeof planVolume>) => {
    const { action } = planVolume(of);
    const change = action && "change" in action ? (action.change as { status?: { phase: string } }) : {};
    return change.status?.phase ?? action?.kind;
  };

  test("is available while it names nobody, or somebody who never came", () => {
    const fresh = volume({ status: { phase: "Pending" } });
    const promised = volume({ spec: { claimRef: ref({ uid: undefined }) }, status: { phase: "Pending" } });

    expect(phaseAfter({ volume: fresh, claim: undefined, confirmed: false })).toBe("Available");
    expect(phaseAfter({ volume: promised, claim: undefined, confirmed: false })).toBe("Available");
  });

  test("is bound with its claim, and a bind that was cut off is the claim's to finish", () => {
    expect(phaseAfter({ volume: mine, claim: owner, confirmed: false })).toBeUndefined();
    expect(phaseAfter({ volume: mine, claim: claim(), confirmed: false })).toBe("look-at-claim");
  });

  test("is released only when the server itself has no such claim", () => {
    const successor = claim({ metadata: { uid: "another" } });

    expect(phaseAfter({ volume: mine, claim: undefined, confirmed: false })).toBe("confirm");
    expect(phaseAfter({ volume: mine, claim: undefined, confirmed: true })).toBe("Released");
    expect(phaseAfter({ volume: mine, claim: successor, confirmed: true })).toBe("Released");
    expect(phaseAfter({ volume: mine, claim: owner, confirmed: true })).toBeUndefined();
  });

  test("that the binder chose for a claim which went before it was told is anybody's again", () => {
    const chosen = volume({
      metadata: { annotations: { [BOUND_BY_CONTROLLER]: "yes" } },
      spec: { claimRef: ref() },
    });
    const given = { ...chosen, status: { phase: "Bound" } };
    const gone = { claim: undefined, confirmed: true };

    expect(phaseAfter({ volume: chosen, ...gone })).toBe("unbind");
    expect(phaseAfter({ volume: given, ...gone })).toBe("Released");
  });

  test("whose claim took another is given back, or reclaimed where it was made for that claim", () => {
    const elsewhere = claim({ spec: { volumeName: "w" } });
    const made = volume({
      metadata: { annotations: { [PROVISIONED_BY]: OURS } },
      spec: { claimRef: ref(), persistentVolumeReclaimPolicy: "Delete" },
    });
    const chosen = volume({
      metadata: { annotations: { [BOUND_BY_CONTROLLER]: "yes" } },
      spec: { claimRef: ref() },
    });
    const unbound = (of: typeof mine) => planVolume({ volume: of, claim: elsewhere, confirmed: true }).action;

    expect(phaseAfter({ volume: made, claim: elsewhere, confirmed: true })).toBe("Released");
    expect(unbound(chosen)).toMatchObject({ kind: "unbind", change: { spec: { claimRef: null } } });
    expect(unbound(mine)).toMatchObject({ kind: "unbind", change: { spec: { claimRef: { uid: null } } } });
  });
});
