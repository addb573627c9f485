import { describe, expect, test } from "vitest";
import {
  csiNodePatchSchema,
  nodePatchSchema,
  objectPatchSchema,
  persistentVolumeClaimPatchSchema,
  podPatchSchema,
  type PatchSchema,
} from "../../kube/patch/patch-schema.ts";
import { KINDS } from "../kinds.ts";
import { patchSchemaOf } from "./patch-schema.ts";
import { definitionOf, knownSchema, type ObjectSchema } from "./schema.ts";

/** What the clients of this product know about a kind, against the whole truth. */
const BY_HAND: Readonly<Record<string, PatchSchema>> = {
  Pod: podPatchSchema,
  Node: nodePatchSchema,
  PersistentVolumeClaim: persistentVolumeClaimPatchSchema,
  CSINode: csiNodePatchSchema,
  PersistentVolume: objectPatchSchema,
};

describe("patch schema", () => {
  for (const [name, byHand] of Object.entries(BY_HAND)) {
    test(`${name} merges here as the clients of this product believe it does`, () => {
      const kind = KINDS.find((served) => served.kind === name)!;

      const differences = compare(patchSchemaOf(kind), byHand, knownSchema(kind), name);

      expect(differences).toEqual([]);
    });
  }

  test("custom resources have none: strategic patches of them are 415", () => {
    const custom = KINDS.filter((kind) => patchSchemaOf(kind) === undefined).map(({ kind }) => kind);

    expect(custom).toEqual(["VolumeSnapshotClass", "VolumeSnapshotContent", "VolumeSnapshot"]);
  });

  test("unknown members and members of scalars take the default", () => {
    const schema = patchSchemaOf({ group: "", version: "v1", kind: "ConfigMap" });

    expect(schema?.field("nonsense")).toBeUndefined();
    expect(schema?.field("data")).toBeUndefined();
    expect(schema?.field("metadata")?.field("finalizers")?.field("x")).toBeUndefined();
  });
});

/** Every field of the table, seen by both; elements of lists are entered where they merge. */
function compare(
  table: PatchSchema | undefined,
  byHand: PatchSchema | undefined,
  schema: ObjectSchema,
  path: string,
): string[] {
  return schema.fields.flatMap(({ name, type }) => {
    const [ours, theirs] = [table?.field(name), byHand?.field(name)];
    const where = `${path}.${name}`;
    // An object nobody described merges, which is what one without lists in it does anyway.
    const isList = type.kind === "list";
    const differs = isList && describeMerge(ours) !== describeMerge(theirs);
    const inner = type.kind === "list" ? type.element : type;
    const below =
      inner.kind === "object" && (!isList || ours !== undefined)
        ? compare(ours, theirs, definitionOf(inner.schema.name), where)
        : [];
    return [
      ...(differs ? [`${where}: ${describeMerge(ours)} and by hand ${describeMerge(theirs)}`] : []),
      ...below,
    ];
  });
}

function describeMerge(schema: PatchSchema | undefined): string {
  if (schema?.strategy !== "merge") return "replaced";
  return `merged by ${schema.mergeKey ?? "value"}${schema.retainKeys === true ? ", retaining keys" : ""}`;
}
