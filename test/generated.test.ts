import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "..");
const BIN = join(ROOT, "node_modules", ".bin");
const GENERATED = join(ROOT, "src/csi/gen");

test.skipIf(!existsSync(join(BIN, "buf")))(
  "src/csi/gen is what `npm run generate` makes of proto/ today",
  { timeout: 60_000 },
  () => {
    const folder = mkdtempSync(join(tmpdir(), "csi-gen-"));
    try {
      const template = join(folder, "template.yaml");
      const out = join(folder, "out");
      const options = readFileSync(join(ROOT, "proto/buf.gen.yaml"), "utf8");
      writeFileSync(template, options.replace(/out: .*/, `out: ${out}`));

      const { status, stderr } = spawnSync(join(BIN, "buf"), ["generate", "--template", template], {
        cwd: join(ROOT, "proto"),
        encoding: "utf8",
        env: { ...process.env, PATH: `${BIN}${delimiter}${process.env["PATH"] ?? ""}` },
      });

      expect([status, stderr]).toEqual([0, ""]);
      expect(filesIn(GENERATED)).toEqual(filesIn(out));
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

function filesIn(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]),
  );
}
