import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";

interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

interface Mutant {
  readonly id: string;
  readonly profile?: string;
  readonly changes: readonly Change[];
  readonly without?: readonly Change[];
}

// `npm run mutants` takes an hour: a change of the code that a mutant changes is told here instead.
test(
  "every mutant still applies to the code, with its other line of defence and without",
  { timeout: 60_000 },
  async () => {
    const { mutants, profiles } = await script<{
      mutants: readonly Mutant[];
      profiles: Readonly<Record<string, unknown>>;
    }>("list");
    const { modulesOf } = await script<{ modulesOf: (mutant: Mutant) => readonly unknown[] }>("apply");

    expect(mutants.length).toBeGreaterThanOrEqual(30);
    for (const { id, changes, without = [], profile = "usual" } of mutants) {
      expect(Object.keys(profiles), id).toContain(profile);
      expect(modulesOf({ id, changes: [...without, ...changes] }).length, id).toBeGreaterThan(0);
      expect(modulesOf({ id, changes: without }).length, id).toBe(
        new Set(without.map(({ file }) => file)).size,
      );
    }
  },
);

async function script<Exports>(name: string): Promise<Exports> {
  const path = join(fileURLToPath(import.meta.url), "../../scripts/mutants", `${name}.mjs`);
  return (await import(pathToFileURL(path).href)) as Exports;
}
