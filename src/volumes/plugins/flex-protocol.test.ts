import { describe, expect, test } from "vitest";
import type { VolumeSpec } from "../spec.ts";
import {
  flexOptionsJson,
  flexSourceOf,
  isObjectName,
  parseDriverDirectory,
  parseFlexAnswer,
  quote,
} from "./flex-protocol.ts";

const SUCCESS = { kind: "success", device: "", attached: false, canAttach: true };

describe("an answer", () => {
  for (const [text, answer] of [
    [`{"status":"Success"}`, SUCCESS],
    [`{"status":"Success","device":"/dev/sdx"}\n`, { ...SUCCESS, device: "/dev/sdx" }],
    [`{"status":"Success","attached":true}`, { ...SUCCESS, attached: true }],
    [`{"status":"Success","capabilities":{"attach":false}}`, { ...SUCCESS, canAttach: false }],
    // A capability that is not mentioned is there.
    [`{"status":"Success","capabilities":{"fsGroup":false}}`, SUCCESS],
    [`{"status":"Success","capabilities":null,"device":null}`, SUCCESS],
    // Go reads field names whatever their case, and so do we.
    [`{"Status":"Success","Capabilities":{"Attach":false}}`, { ...SUCCESS, canAttach: false }],
    [`{"status":"Not supported"}`, { kind: "not-supported" }],
    [`{"status":"Failure","message":"no LUN"}`, { kind: "failure", reason: `status "Failure", "no LUN"` }],
    [`{"status":"success"}`, { kind: "failure", reason: `status "success", ""` }],
    [`{}`, { kind: "failure", reason: `status "nothing", ""` }],
  ] as const) {
    test(`${text.trim()} is ${answer.kind}`, () => {
      expect(parseFlexAnswer(text)).toEqual(answer);
    });
  }

  for (const text of [
    "",
    "attached /dev/sdx",
    "[]",
    "null",
    `"Success"`,
    `{"status":"Success"} trailing`,
    `{"status":"Success","attached":"true"}`,
    `{"status":"Success","device":7}`,
    `{"status":"Success","capabilities":{"attach":"no"}}`,
  ]) {
    test(`${JSON.stringify(text)} is unreadable, not a success`, () => {
      expect(parseFlexAnswer(text).kind).toBe("unreadable");
    });
  }
});

describe("what a driver says reaches people", () => {
  test("without credentials, on one line", () => {
    expect(quote("cannot log in\n\tto https://admin:hunter22@san.example/")).toBe(
      `"cannot log in to https://admin:[redacted]@san.example/"`,
    );
  });

  test("and not at any length", () => {
    expect(quote("x".repeat(1_000_000)).length).toBeLessThan(1_010);
  });
});

describe("the options a driver gets", () => {
  const json = (spec: VolumeSpec) => JSON.parse(flexOptionsJson(spec, flexSourceOf(spec)!)) as unknown;
  const source = { driver: "acme/disk", fsType: "xfs", options: { lun: "7", pool: "gold" } };

  test("of a PersistentVolume: read-only is the claim's word, not the volume's", () => {
    const spec = (readOnly: boolean): VolumeSpec => ({
      kind: "persistent",
      volume: { metadata: { name: "pv-1" }, spec: { flexVolume: { ...source, readOnly: !readOnly } } },
      readOnly,
      migrated: "none",
    });

    expect(json(spec(true))).toEqual({
      "kubernetes.io/fsType": "xfs",
      "kubernetes.io/pvOrVolumeName": "pv-1",
      "kubernetes.io/readwrite": "ro",
      lun: "7",
      pool: "gold",
    });
    expect(json(spec(false))).toMatchObject({ "kubernetes.io/readwrite": "rw" });
  });

  test("of a volume in a pod, with nothing set; a secret is not mentioned", () => {
    const flexVolume = { driver: "acme/disk", readOnly: true, secretRef: { name: "login" } };

    expect(json({ kind: "inline", volume: { name: "data", flexVolume } })).toEqual({
      "kubernetes.io/fsType": "",
      "kubernetes.io/pvOrVolumeName": "data",
      "kubernetes.io/readwrite": "ro",
    });
  });

  test("an option cannot pose as one of ours", () => {
    const flexVolume = { driver: "acme/disk", options: { "kubernetes.io/readwrite": "rw" }, readOnly: true };

    expect(json({ kind: "inline", volume: { name: "data", flexVolume } })).toMatchObject({
      "kubernetes.io/readwrite": "ro",
    });
  });

  test("in one order, whatever the spec's", () => {
    const text = (options: Record<string, string>) => {
      const flexVolume = { driver: "acme/disk", options };
      return flexOptionsJson({ kind: "inline", volume: { name: "data", flexVolume } }, flexVolume);
    };

    expect(text({ a: "1", z: "2" })).toBe(text({ z: "2", a: "1" }));
  });
});

test("a directory names vendor and driver", () => {
  expect(parseDriverDirectory("acme.com~disk")).toEqual({ driver: "acme.com/disk", program: "disk" });
  for (const bad of ["disk", "~disk", "acme~", "a~b~c", "", "kubernetes.io~csi"])
    expect(parseDriverDirectory(bad)).toBeUndefined();
});

test("a driver is given names of objects and nothing else", () => {
  for (const good of ["pv-1", "a", "ip-10-0-1-23.ec2.internal", "0"]) expect(isObjectName(good)).toBe(true);
  for (const bad of ["", "-rf", "a b", "a;b", "$(id)", "../x", "a/b", "A", "a\n", "a-", "x".repeat(254)])
    expect(isObjectName(bad)).toBe(false);
});
