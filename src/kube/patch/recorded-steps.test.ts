import { describe, expect, test } from "vitest";
import { KubeError } from "../errors.ts";
import recorded from "../fixtures/patch-steps.json" with { type: "json" };
import { applyJsonPatch } from "./json-patch.ts";
import { entriesOf, isJsonList, isJsonObject, type Json } from "./json.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { objectPatchSchema, podPatchSchema } from "./patch-schema.ts";
import { applyStrategicPatch } from "./strategic-patch.ts";

/**
 * Patches sent to a real API server and what became of the object, without the fields the server sets
 * itself. A typed server drops nulls and empty lists and maps on the way, so the comparison does too.
 */
interface Step {
  readonly step: number;
  readonly note: string;
  readonly type: "json" | "merge" | "strategic";
  readonly kind: "Pod" | "ConfigMap";
  readonly before: Json;
  readonly patch: Json;
  readonly after?: Json;
  readonly status?: number;
}

/** The real server answers 500 to a list element without its merge key; ours is to say what is wrong. */
const CODES: Readonly<Record<number, string>> = { 400: "BadRequest", 422: "Invalid", 500: "Invalid" };

/** An unknown `$patch` is data to the patch; it was validation of the result that refused it. */
const REFUSED_LATER = 49;

function apply({ type, kind, before, patch }: Step): Json {
  switch (type) {
    case "json":
      return applyJsonPatch(before, patch);
    case "merge":
      return applyMergePatch(before, patch);
    case "strategic":
      return applyStrategicPatch(before, patch, kind === "Pod" ? podPatchSchema : objectPatchSchema);
  }
}

function typed(value: Json): Json {
  if (isJsonList(value)) return value.map(typed);
  if (!isJsonObject(value)) return value;
  const members = entriesOf(value).map(([key, member]): [string, Json] => [key, typed(member)]);
  return Object.fromEntries(members.filter(([, member]) => member !== null && !isEmpty(member)));
}

function isEmpty(value: Json): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

describe("recorded from a real API server", () => {
  const steps = recorded as unknown as readonly Step[];

  test("there are steps to replay", () => {
    expect(steps.length).toBe(33);
  });

  for (const step of steps) {
    const name = `${step.step}: ${step.type} ${step.note || JSON.stringify(step.patch)}`;
    if (step.status === undefined) {
      test(`${name} applies`, () => {
        const before = structuredClone(step.before);

        expect(typed(apply(step))).toEqual(step.after);
        expect(step.before).toEqual(before);
      });
    } else if (step.step === REFUSED_LATER) {
      test(`${name} leaves the refusal to validation`, () => {
        expect(apply(step)).toMatchObject({ data: { $patch: "bogus" } });
      });
    } else {
      test(`${name} is refused with ${step.status}`, () => {
        let error: unknown;
        try {
          apply(step);
        } catch (thrown) {
          error = thrown;
        }

        expect(error).toBeInstanceOf(KubeError);
        expect((error as KubeError).code).toBe(CODES[step.status ?? 0]);
      });
    }
  }
});
