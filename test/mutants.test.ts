import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";

const root = join(fileURLToPath(import.meta.url), "../..");
const load = async <T>(file: string) =>
  (await import(pathToFileURL(join(root, "scripts/mutants", file)).href)) as T;

interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

interface Mutant {
  readonly id: string;
  readonly profile?: string;
  /** The file that judges it instead of seeds. */
  readonly test?: string;
  readonly changes: readonly Change[];
  readonly without?: readonly Change[];
}

interface Promised {
  readonly says: string;
  readonly mutants: readonly string[];
  readonly tests?: readonly string[];
}

const { mutants, profiles } = await load<{
  readonly mutants: readonly Mutant[];
  readonly profiles: Readonly<Record<string, unknown>>;
}>("list.mjs");
const { mends, planPromises } = await load<{
  readonly mends: readonly Promised[];
  readonly planPromises: readonly { readonly promises: readonly Promised[] }[];
}>("promises.mjs");
const { sourcesOf } = await load<{
  readonly sourcesOf: (mutant: Mutant) => ReadonlyMap<string, string>;
}>("apply.mjs");

test("every mutant still applies to the code, and has a plan or a test file that judges it", () => {
  expect(new Set(mutants.map(({ id }) => id)).size).toBe(mutants.length);
  for (const mutant of mutants) {
    const changes = [...(mutant.without ?? []), ...mutant.changes];
    expect(sourcesOf({ ...mutant, changes }).size).toBeGreaterThan(0);
    if (mutant.test === undefined) expect(profiles, mutant.id).toHaveProperty(mutant.profile ?? "usual");
    else expect(existsSync(join(root, mutant.test)), mutant.test).toBe(true);
  }
});

test("every mend and every promise of a plan file has a mutant", () => {
  const known = new Set(mutants.map(({ id }) => id));
  const all = [...mends, ...planPromises.flatMap(({ promises }) => promises)];

  expect(mends).toHaveLength(20);
  for (const { says, mutants: ids, tests = [] } of all) {
    expect(ids.length, says).toBeGreaterThan(0);
    expect(ids.filter((id) => !known.has(id))).toEqual([]);
    expect(tests.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  }
});
