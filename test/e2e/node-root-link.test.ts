import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { silentLogger } from "../../src/base/log.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createLinuxHost } from "../../src/node/linux-host.ts";
import { createPaths } from "../../src/node/paths.ts";
import { createEmptyDirPlugin } from "../../src/node/plugins/empty-dir.ts";
import { spellRoot } from "../../src/node/root-spelling.ts";

/** A root directory behind a link, on this machine's kernel: its table knows only the real path. */

const isRoot = process.getuid?.() === 0 && process.platform === "linux";
const base = realpathSync(mkdtempSync(join(tmpdir(), "node-root-")));
const machine = createLinuxHost({ clock: createSystemClock() });

const mounts = () =>
  execFileSync("cat", ["/proc/self/mountinfo"], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${base}/`));

describe.skipIf(!isRoot)("a root directory behind a link, for real", () => {
  test("a tmpfs is mounted once however often it is set up, found in the table, and gone after tear-down", async () => {
    mkdirSync(join(base, "real"));
    symlinkSync(join(base, "real"), join(base, "link"));
    const paths = createPaths(join(base, "link"));
    const host = await spellRoot(machine, paths.root);
    const plugin = createEmptyDirPlugin({
      ...{ host, paths, log: silentLogger, random: createSeededRandom(1) },
      objects: { node: () => undefined },
    });
    const spec = { kind: "inline", volume: { name: "ram", emptyDir: { medium: "Memory" } } } as const;
    const pod = { metadata: { name: "web", namespace: "default", uid: "u1" }, spec: { containers: [] } };
    const signal = new AbortController().signal;
    const step = { volume: "kubernetes.io/empty-dir/u1-ram", podUid: "u1", spec, pod, signal } as never;

    for (let again = 0; again < 3; again++) await plugin.setUp(step);

    const path = paths.podVolume("u1", "kubernetes.io/empty-dir", "ram");
    expect(mounts()).toEqual([path.replace("/link/", "/real/")]);
    expect((await host.mounts.table()).at(path)).toMatchObject({ path, type: "tmpfs" });
    await plugin.tearDown({ ...(step as object), specName: "ram" } as never);
    expect(mounts()).toEqual([]);
  });

  test("once the link leads elsewhere, nothing is said about mounts", async () => {
    mkdirSync(join(base, "one"));
    mkdirSync(join(base, "two"));
    symlinkSync(join(base, "one"), join(base, "moving"));
    const host = await spellRoot(machine, join(base, "moving"));
    symlinkSync(join(base, "two"), join(base, "moved"));
    renameSync(join(base, "moved"), join(base, "moving"));

    await expect(host.mounts.table()).rejects.toThrow(/led to .*\/one .* leads to .*\/two now/);
    await expect(host.mounts.isMountPoint(join(base, "moving"))).rejects.toThrow("restart the agent");
  });
});

afterAll(() => {
  for (const path of mounts().reverse()) execFileSync("umount", [path]);
  machine.close();
  rmSync(base, { recursive: true, force: true });
});
