import { expect, test } from "vitest";
import { chance, type Random } from "../../base/random.ts";
import type { Json, JsonObject } from "../../kube/patch/json.ts";
import { forSeeds } from "../../sim/seeds.ts";
import { pods } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { decodePatched } from "../schema/body.ts";
import { applyPatch } from "./apply.ts";
import { applySchemaOf } from "./apply-schema.ts";
import { compareObjects } from "./compare.ts";
import { extractFields } from "./extract.ts";
import {
  difference,
  EMPTY,
  fromFieldsV1,
  intersection,
  isEmpty,
  pathsOf,
  setOf,
  toFieldsV1,
  union,
  type FieldSet,
} from "./field-set.ts";
import { withManagedFields } from "./managed-fields.ts";
import { trackUpdate } from "./managers.ts";
import { describePath, fieldElement, keyElement, valueElement, type Path } from "./path-element.ts";

const SEEDS = 150;
const schema = applySchemaOf(pods);

function some(random: Random, names: string): string[] {
  return Array.from(names).filter(() => chance(random, 0.5));
}

function value(random: Random): string {
  return String(random.int(3));
}

/** A pod with a little of everything: maps, sets, lists by key, lists in lists, atomic lists and objects. */
function randomPod(random: Random): JsonObject {
  const labels = some(random, "abc").map((name): [string, Json] => [name, value(random)]);
  const containers = some(random, "xyz").map((name): JsonObject => {
    const env = some(random, "EFG").map((key): JsonObject => ({ name: key, value: value(random) }));
    return { name, image: value(random), ...(env.length === 0 ? {} : { env }) };
  });
  const finalizers = some(random, "fgh").map((name) => `x.io/${name}`);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "p",
      ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }),
      ...(finalizers.length === 0 ? {} : { finalizers }),
    },
    spec: {
      hostname: value(random),
      ...(containers.length === 0 ? {} : { containers }),
      ...(chance(random, 0.5) ? { nodeName: value(random) } : {}),
      ...(chance(random, 0.5)
        ? { tolerations: [...some(random, "tu"), "v"].map((key): JsonObject => ({ key })) }
        : {}),
      ...(chance(random, 0.5) ? { securityContext: { runAsUser: random.int(3) } } : {}),
    },
  };
}

function at(second: number): Date {
  return new Date(second * 1000);
}

function updated(
  before: ApiObject | undefined,
  after: JsonObject,
  manager: string,
  second: number,
): ApiObject {
  const object = decoded(after);
  return withManagedFields(
    { ...object, metadata: { ...object.metadata, uid: "u" } },
    trackUpdate({ kind: pods, before, after: object, manager, now: at(second) }),
  );
}

function tryApply(
  live: ApiObject | undefined,
  applied: JsonObject,
  { manager, force, second }: { manager: string; force: boolean; second: number },
): ApiObject | undefined {
  const outcome = applyPatch({ kind: pods, name: "p", live, applied, manager, force, now: at(second) });
  if (outcome.kind === "conflict") return undefined;
  return withManagedFields(decoded(outcome.object), outcome.managedFields);
}

function forced(live: ApiObject | undefined, applied: JsonObject, manager: string, second = 0): ApiObject {
  return tryApply(live, applied, { manager, force: true, second })!;
}

function decoded(object: JsonObject): ApiObject {
  return decodePatched(pods, object).object;
}

function json(object: ApiObject): JsonObject {
  return withManagedFields(object, undefined) as unknown as JsonObject;
}

function owned({ metadata }: ApiObject, by: (manager: string) => boolean = () => true): FieldSet {
  return (metadata.managedFields ?? [])
    .filter(({ manager = "" }) => by(manager))
    .map(({ fieldsV1 }) => fromFieldsV1(fieldsV1) ?? EMPTY)
    .reduce(union, EMPTY);
}

/** Every path that leads to something in the object. */
function existing(object: ApiObject): FieldSet {
  return union(extractFields(schema, json(object)), compareObjects(schema, {}, json(object)).added);
}

function texts(set: FieldSet): readonly string[] {
  return pathsOf(set).map(describePath);
}

/** A pod after a few writes and applies by several managers, with every conflict forced. */
function randomHistory(random: Random): ApiObject {
  let object = updated(undefined, randomPod(random), "u0", 0);
  for (let second = 1; second <= 1 + random.int(5); second++) {
    const manager = String(random.int(3));
    object = chance(random, 0.5)
      ? updated(object, randomPod(random), `u${manager}`, second)
      : forced(object, randomPod(random), `a${manager}`, second);
  }
  return object;
}

test("applying the same twice changes nothing, whatever happened before", async () => {
  await forSeeds(SEEDS, (random) => {
    const body = randomPod(random);
    const once = forced(randomHistory(random), body, "me", 50);

    expect(forced(once, body, "me", 60)).toEqual(once);
  });
});

test("whoever applies a whole object by force owns every field of it", async () => {
  await forSeeds(SEEDS, (random) => {
    const object = randomHistory(random);
    const whole = { ...json(object), apiVersion: "v1", kind: "Pod" };

    const after = forced(object, whole, "me", 50);

    expect(json(after)).toEqual(json(object));
    expect(texts(owned(after, (manager) => manager === "me"))).toEqual(texts(extractFields(schema, whole)));
  });
});

test("nobody owns by ordinary writes what is not there", async () => {
  await forSeeds(SEEDS, (random) => {
    let object = updated(undefined, randomPod(random), "u0", 0);
    for (let second = 1; second <= 15; second++) {
      object = updated(object, randomPod(random), `u${random.int(14)}`, second);

      expect(texts(difference(owned(object), existing(object)))).toEqual([]);
      expect(object.metadata.managedFields?.length ?? 0).toBeLessThanOrEqual(10);
    }
  });
});

test("a field changed by an ordinary write has its writer for its only owner", async () => {
  await forSeeds(SEEDS, (random) => {
    const before = randomHistory(random);
    const after = updated(before, randomPod(random), "me", 50);
    if (before.metadata.managedFields === undefined) return;

    const { added, modified } = compareObjects(schema, json(before), json(after));
    const changed = union(added, modified);

    expect(
      texts(
        difference(
          changed,
          owned(after, (manager) => manager === "me"),
        ),
      ),
    ).toEqual([]);
    expect(
      texts(
        intersection(
          changed,
          owned(after, (manager) => manager !== "me"),
        ),
      ),
    ).toEqual([]);
  });
});

test("what a manager applied and does not apply again goes, unless somebody else owns it", async () => {
  await forSeeds(SEEDS, (random) => {
    const [first, second] = [randomPod(random), randomPod(random)];
    const before = forced(randomHistory(random), first, "me", 50);
    const after = forced(before, second, "me", 60);

    const dropped = difference(extractFields(schema, first), extractFields(schema, second));
    const others = owned(before, (manager) => manager !== "me");
    const mustGo = difference(dropped, union(others, owned(after)));

    expect(texts(intersection(mustGo, extractFields(schema, json(after))))).toEqual([]);
    expect(texts(difference(extractFields(schema, second), existing(after)))).toEqual([]);
  });
});

test("an apply without force changes no field that somebody else owns", async () => {
  let succeeded = 0;
  await forSeeds(4 * SEEDS, (random) => {
    const before = randomHistory(random);
    const after = tryApply(before, randomPod(random), { manager: "me", force: false, second: 50 });
    if (after === undefined) return;
    succeeded++;

    const { added, modified } = compareObjects(schema, json(before), json(after));

    expect(texts(intersection(union(added, modified), owned(before)))).toEqual([]);
  });
  expect(succeeded).toBeGreaterThan(0);
});

test("sets of fields obey the laws of sets", async () => {
  await forSeeds(SEEDS, (random) => {
    const [a, b] = [randomPaths(random), randomPaths(random)];
    const [left, right] = [setOf(...a), setOf(...b)];
    const names = (paths: readonly Path[]) => [...new Set(paths.map(describePath))].sort();
    const inBoth = (path: Path) => names(b).includes(describePath(path));

    expect([...texts(union(left, right))].sort()).toEqual(names([...a, ...b]));
    expect([...texts(intersection(left, right))].sort()).toEqual(names(a.filter(inBoth)));
    expect([...texts(difference(left, right))].sort()).toEqual(names(a.filter((path) => !inBoth(path))));
    expect(texts(fromFieldsV1(toFieldsV1(left))!)).toEqual(texts(left));
    expect(isEmpty(difference(left, left))).toBe(true);
  });
});

function randomPaths(random: Random): Path[] {
  const element = () => {
    const name = value(random);
    if (chance(random, 0.3)) return keyElement([["name", name]]);
    return chance(random, 0.3) ? valueElement(name) : fieldElement(name);
  };
  return Array.from({ length: random.int(12) }, () => Array.from({ length: 1 + random.int(3) }, element));
}
