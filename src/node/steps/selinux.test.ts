import { describe, expect, test } from "vitest";
import type { PodSpec } from "kubernetes-types/core/v1.js";
import { fileLabel } from "../linux-selinux.ts";
import { inline, persistent, pod } from "../plugins/plugins.testing.ts";
import { PLAIN_TRAITS } from "../plugins/sources.ts";
import { labelVerdict, NO_SELINUX, type LabelRequest, type Selinux } from "./selinux.ts";

const POLICY = "system_u:object_r:container_file_t:s0";
const HOST: Selinux = { enabled: true, fileLabel: (options) => fileLabel(POLICY, options) };
const LEVEL = { level: "s0:c1,c2" };
const LABEL = "system_u:object_r:container_file_t:s0:c1,c2";
const using = (seLinuxOptions?: object, name = "c") => ({
  name,
  volumeMounts: [{ name: "v", mountPath: "/v" }],
  ...(seLinuxOptions && { securityContext: { seLinuxOptions } }),
});

function verdict(podSpec: Partial<PodSpec>, more: Partial<LabelRequest> = {}, host = HOST) {
  return labelVerdict(host, {
    pod: pod(podSpec),
    spec: persistent({ accessModes: ["ReadWriteOnce"] }),
    mode: "Filesystem",
    outerName: "v",
    traits: { ...PLAIN_TRAITS, selinuxMount: true },
    everyVolume: true,
    ...more,
  });
}

const PLAIN = { containers: [using(LEVEL)] };
const RWOP = { spec: persistent({ accessModes: ["ReadWriteOncePod"] }) };
const none = { kind: "label", label: "" };

describe("whether a volume is mounted with a context", () => {
  for (const [what, podSpec, more, label] of [
    ["a PersistentVolume of a driver that takes it", PLAIN, {}, LABEL],
    ["without the gate, ReadWriteOnce", PLAIN, { everyVolume: false }, ""],
    ["without the gate, ReadWriteOncePod alone", PLAIN, { everyVolume: false, ...RWOP }, LABEL],
    [
      "without the gate, ReadWriteOncePod and another mode",
      PLAIN,
      { everyVolume: false, spec: persistent({ accessModes: ["ReadWriteOncePod", "ReadWriteOnce"] }) },
      "",
    ],
    ["a driver that does not take it", PLAIN, { traits: PLAIN_TRAITS }, ""],
    ["a volume written into the pod", PLAIN, { spec: inline({ csi: { driver: "d" } }) }, ""],
    ["a raw block volume", PLAIN, { mode: "Block" }, ""],
    [
      "a pod that wants its files relabelled one by one",
      { ...PLAIN, securityContext: { seLinuxChangePolicy: "Recursive" } as object },
      {},
      "",
    ],
    ["options of the pod", { containers: [using()], securityContext: { seLinuxOptions: LEVEL } }, {}, LABEL],
    [
      "options of a container before those of the pod",
      { containers: [using(LEVEL)], securityContext: { seLinuxOptions: { level: "s0:c9" } } },
      {},
      LABEL,
    ],
    [
      "a container that does not use it",
      { containers: [{ name: "c", securityContext: { seLinuxOptions: LEVEL } }] },
      {},
      "",
    ],
    ["no options at all", { containers: [using()] }, {}, ""],
    ["a type without a level, which the runtime chooses", { containers: [using({ type: "spc_t" })] }, {}, ""],
    ["an init container", { containers: [], initContainers: [using(LEVEL)] }, {}, LABEL],
  ] as const)
    test(`${what}: ${label === "" ? "no" : "yes"}`, () => {
      expect(verdict(podSpec as Partial<PodSpec>, more as Partial<LabelRequest>)).toEqual({
        kind: "label",
        label,
      });
    });

  test("a machine without SELinux has no labels and no problems, whatever pods ask for", () => {
    const containers = [using(LEVEL), using({ level: "s0:c9" }, "d")];

    expect(verdict({ containers }, {}, NO_SELINUX)).toEqual(none);
  });
});

test("two labels on one volume are refused where they would be used, and only counted elsewhere", () => {
  const containers = [using(LEVEL), using({ level: "s0:c9" }, "d")];

  expect(verdict({ containers })).toEqual({
    kind: "refused",
    problem: "several-labels",
    message: `multiple SELinux labels found: ${LABEL},system_u:object_r:container_file_t:s0:c9`,
  });
  expect(verdict({ containers }, { traits: PLAIN_TRAITS })).toEqual({ ...none, problem: "several-labels" });
});

test("options that become no label are refused where it would be used: nothing of them reaches a command line", () => {
  const containers = [using({ level: 's0",suid' })];

  expect(verdict({ containers })).toMatchObject({ kind: "refused", problem: "untranslatable" });
  expect(verdict({ containers }, { traits: PLAIN_TRAITS })).toEqual({ ...none, problem: "untranslatable" });
});
