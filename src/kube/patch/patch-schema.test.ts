import { describe, expect, test } from "vitest";
import fields from "../fixtures/patch-fields-v1.37.json" with { type: "json" };
import {
  csiNodePatchSchema,
  nodePatchSchema,
  objectPatchSchema,
  persistentVolumeClaimPatchSchema,
  podPatchSchema,
  type PatchSchema,
} from "./patch-schema.ts";

/** The table of all fields of Kubernetes 1.37, cut down to what decides how a field is patched. */
interface TableField {
  /** `#Definition`, `[#Definition]` a list, `{#Definition}` a map. */
  readonly t: string;
  readonly patchStrategy?: string;
  readonly patchMergeKey?: string;
}

const table = fields as Readonly<Record<string, Readonly<Record<string, TableField>>>>;

/** How a server derives the schema from the table. */
function schemaFromTable({ t, patchStrategy = "", patchMergeKey }: TableField): PatchSchema {
  const definition = table[/#(\w+)/.exec(t)?.[1] ?? ""] ?? {};
  const isMap = t.startsWith("{");
  const isReplaced = t.startsWith("[") && !patchStrategy.includes("merge");
  return {
    strategy: isReplaced ? "replace" : "merge",
    ...(patchMergeKey === undefined ? {} : { mergeKey: patchMergeKey }),
    retainKeys: patchStrategy.includes("retainKeys"),
    field: (name) => {
      if (isMap) return schemaFromTable({ t: t.slice(1, -1) });
      const field = definition[name];
      return field === undefined ? undefined : schemaFromTable(field);
    },
  };
}

/** Every field of the kind, as `path: rule`; stops at lists that are replaced, whose insides do not matter. */
function rules(kind: string, schema: PatchSchema): string[] {
  const found: string[] = [];
  const walk = (definition: string, at: PatchSchema | undefined, path: string): void => {
    for (const [name, { t }] of Object.entries(table[definition] ?? {})) {
      const rule = at?.field(name);
      const strategy = rule?.strategy ?? (t.startsWith("[") ? "replace" : "merge");
      const retains = rule?.retainKeys === true ? " retainKeys" : "";
      found.push(`${path}.${name}: ${strategy} ${rule?.mergeKey ?? "-"}${retains}`);
      if (strategy === "merge") walk(/#(\w+)/.exec(t)?.[1] ?? "", rule, `${path}.${name}`);
    }
  };
  walk(kind, schema, kind);
  return found;
}

describe("the compact schemas say what the table of all fields says", () => {
  for (const [kind, schema, merged] of [
    ["Pod", podPatchSchema, 33],
    ["Node", nodePatchSchema, 5],
    ["PersistentVolumeClaim", persistentVolumeClaimPatchSchema, 4],
    ["CSINode", csiNodePatchSchema, 4],
    ["PersistentVolume", objectPatchSchema, 2],
    ["VolumeAttachment", objectPatchSchema, 2],
  ] as const) {
    test(kind, () => {
      const expected = rules(kind, schemaFromTable({ t: `#${kind}` }));

      expect(rules(kind, schema)).toEqual(expected);
      expect(expected.filter((rule) => / merge /.test(rule) && isListRule(rule))).toHaveLength(merged);
    });
  }
});

function isListRule(rule: string): boolean {
  const [kind = "", ...names] = rule.slice(0, rule.indexOf(":")).split(".");
  let type = `#${kind}`;
  for (const name of names) type = table[/#(\w+)/.exec(type)?.[1] ?? ""]?.[name]?.t ?? "";
  return type.startsWith("[");
}

test("a field called constructor is a field nobody described", () => {
  expect(podPatchSchema.field("constructor")).toBeUndefined();
});
