import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  ControllerPublishVolumeRequestSchema,
  CreateVolumeRequestSchema,
  ListVolumesRequestSchema,
  NodePublishVolumeRequestSchema,
} from "./gen/csi_pb.ts";
import { limitProblem, pluginNameProblem, topologyProblem } from "./limits.ts";

const createVolume = (init: Parameters<typeof create<typeof CreateVolumeRequestSchema>>[1]) =>
  limitProblem(CreateVolumeRequestSchema, create(CreateVolumeRequestSchema, init));
const publish = (init: Parameters<typeof create<typeof NodePublishVolumeRequestSchema>>[1]) =>
  limitProblem(NodePublishVolumeRequestSchema, create(NodePublishVolumeRequestSchema, init));
const attach = (nodeId: string) =>
  limitProblem(
    ControllerPublishVolumeRequestSchema,
    create(ControllerPublishVolumeRequestSchema, { volumeId: "v", nodeId }),
  );

describe("limits of fields", () => {
  for (const [claim, problem, expected] of [
    ["a name of 128 bytes is fine", createVolume({ name: "x".repeat(128) }), undefined],
    ["129 are not", createVolume({ name: "x".repeat(129) }), /^name takes 129 bytes, at most 128/],
    ["bytes are counted, not characters", createVolume({ name: "ü".repeat(65) }), /130 bytes/],
    ["any Unicode may be in a name", createVolume({ name: "日本\t\n\r😀" }), undefined],
    ["control characters may not", createVolume({ name: "a\u0007" }), /control character/],
    ["nor those above 126", createVolume({ name: "a\u0085" }), /control character/],
    ["a map of 4 KiB is fine", createVolume({ parameters: { k: "x".repeat(4_095) } }), undefined],
    [
      "one byte more is not",
      createVolume({ parameters: { kk: "x".repeat(4_095) } }),
      /^parameters takes 4097/,
    ],
    ["secret keys have an alphabet", createVolume({ secrets: { "a/b": "c" } }), /^secrets has a key/],
    ["and this is it", createVolume({ secrets: { "Az0-_.": "c" } }), undefined],
    [
      "a negative size",
      createVolume({ capacityRange: { limitBytes: -1n } }),
      /^capacity_range\.limit_bytes is neg/,
    ],
    ["a node id of 256 bytes is fine", attach("n".repeat(256)), undefined],
    ["257 are not", attach("n".repeat(257)), /^node_id takes 257/],
    ["a path of 4096 bytes is fine", publish({ targetPath: `/${"x".repeat(4_095)}` }), undefined],
    ["4097 are not", publish({ targetPath: `/${"x".repeat(4_096)}` }), /^target_path takes 4097/],
    ["a NUL in a path", publish({ targetPath: "/a\0b" }), /NUL/],
    [
      "tokens of the kubelet may be longer",
      publish({ volumeContext: { "csi.storage.k8s.io/serviceAccount.tokens": "x".repeat(9_000) } }),
      undefined,
    ],
  ] as const) {
    test(claim, () => {
      if (expected === undefined) expect(problem).toBeUndefined();
      else expect(problem).toMatch(expected);
    });
  }

  test("mount flags share 4 KiB, and none is quoted", () => {
    const mountFlags = [`password=${"x".repeat(4_096)}`];

    const problem = createVolume({
      volumeCapabilities: [{ accessType: { case: "mount", value: { mountFlags } } }],
    });

    expect(problem).toBe(
      "volume_capabilities[0].mount.mount_flags takes 4105 bytes in total, at most 4096 are allowed",
    );
  });

  test("a negative count of entries is refused", () => {
    const request = create(ListVolumesRequestSchema, { maxEntries: -1 });

    expect(limitProblem(ListVolumesRequestSchema, request)).toBe("max_entries is negative");
  });

  test("topology inside a request is checked as topology", () => {
    const problem = createVolume({
      accessibilityRequirements: { requisite: [{ segments: { "a/b/c": "x" } }] },
    });

    expect(problem).toMatch(/^topology: "a\/b\/c"/);
  });
});

test("topology keys and values", () => {
  const long = "x".repeat(63);

  expect(topologyProblem({ [`${long}/${long}`]: long, zone: "" })).toBeUndefined();
  expect(topologyProblem({ [`${long}y/zone`]: "a" })).toMatch(/not a name/);
  expect(topologyProblem({ zone: `${long}y` })).toMatch(/value of zone/);
  expect(topologyProblem({ Zone: "a", zone: "b" })).toMatch(/upper and lower/);
  expect(topologyProblem({ "../zone": "a" })).toMatch(/not a name/);
});

test("names of drivers", () => {
  const good = ["loop.csi.mooring.dev", "a", `a${"b".repeat(61)}c`];
  const bad = ["", "-a", "a-", "1a", "a1", "a/b", "a b", `a${"b".repeat(63)}`];

  expect(good.map(pluginNameProblem)).toEqual(good.map(() => undefined));
  expect(bad.filter((name) => pluginNameProblem(name) === undefined)).toEqual([]);
});
