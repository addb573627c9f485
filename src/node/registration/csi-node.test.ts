import { describe, expect, test } from "vitest";
import type { CSINode } from "../../kube/api/csi-node.ts";
import {
  driversOf,
  nodePatchToInstall,
  nodePatchToUninstall,
  stepsToInstall,
  withCount,
  withoutDriver,
} from "./csi-node.ts";

const facts = { name: "d", nodeId: "id-1", maxVolumes: 10n, topology: { zone: "z1" } };
const empty: CSINode = { metadata: { name: "n1" }, spec: { drivers: [] } };
const installed = stepsToInstall(empty, facts)[0]!;
const namesOf = (steps: readonly CSINode[]) =>
  steps.map((step) => driversOf(step).map(({ nodeID }) => nodeID));

describe("CSINode", () => {
  test("what is there already is not written again", () => {
    expect(stepsToInstall(installed, facts)).toEqual([]);
    expect(withCount(installed, facts)).toBeUndefined();
    expect(withoutDriver(empty, "d")).toBeUndefined();
  });

  test("a count changes in place; an id goes out first and comes in again, as servers demand", () => {
    expect(namesOf(stepsToInstall(installed, { ...facts, maxVolumes: 20n }))).toEqual([["id-1"]]);
    expect(namesOf(stepsToInstall(installed, { ...facts, nodeId: "id-2" }))).toEqual([[], ["id-2"]]);
    expect(namesOf(stepsToInstall(installed, { ...facts, topology: {} }))).toEqual([[], ["id-1"]]);
  });

  test("a refresh changes the count of a driver that is there, and installs none", () => {
    expect(driversOf(withCount(installed, { ...facts, maxVolumes: 0n })!)[0]).not.toHaveProperty(
      "allocatable",
    );
    expect(withCount(empty, facts)).toBeUndefined();
  });

  test("objects written by anybody do no harm", () => {
    const odd = { metadata: { name: "n1" }, spec: { drivers: [null, "x"] } } as unknown as CSINode;

    expect(driversOf(odd)).toEqual([]);
    expect(driversOf({ metadata: {} } as CSINode)).toEqual([]);
  });
});

describe("Node", () => {
  const annotation = "csi.volume.kubernetes.io/nodeid";
  const node = (value: string | undefined, labels: Record<string, string> = {}) => ({
    metadata: {
      name: "n1",
      resourceVersion: "7",
      labels,
      ...(value === undefined ? {} : { annotations: { [annotation]: value } }),
    },
  });

  test("other drivers' ids stay, and the patch says which version it was made from", () => {
    expect(nodePatchToInstall(node('{"e":"x"}'), facts)).toEqual({
      metadata: {
        resourceVersion: "7",
        annotations: { [annotation]: '{"d":"id-1","e":"x"}' },
        labels: { zone: "z1" },
      },
    });
    expect(nodePatchToInstall(node('{"d":"id-1"}', { zone: "z1" }), facts)).toBeUndefined();
  });

  test("an annotation that is no map is replaced", () => {
    for (const broken of ["", "{", "[1]", "7"])
      expect(nodePatchToInstall(node(broken), facts)?.metadata.annotations).toEqual({
        [annotation]: '{"d":"id-1"}',
      });
  });

  test("the last id takes the annotation with it; labels stay", () => {
    expect(nodePatchToUninstall(node('{"d":"id-1"}', { zone: "z1" }), "d")).toEqual({
      metadata: { resourceVersion: "7", annotations: { [annotation]: null } },
    });
    expect(nodePatchToUninstall(node(undefined), "d")).toBeUndefined();
  });
});
