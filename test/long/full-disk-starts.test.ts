import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Bounded } from "../e2e/bounded.ts";
import { scratch, type Running } from "../e2e/mooring.ts";
import { canMount, fill, makeRoom, run, SmallDisks, type DiskType } from "../e2e/small-disk.ts";
import { loopDevicesBelow, mountsBelow } from "../e2e/up-world.ts";

/**
 * Processes on disks that are full, fill up, or are read-only, for real: each start works or ends with an error that names
 * the place, within seconds; one signal ends it, and nothing stays mounted. `MOORING_EVERY_STEP=1` tries every 4 kB.
 */
const everyStep = process.env["MOORING_EVERY_STEP"] !== undefined;
const FREE_KB = everyStep ? Array.from({ length: 17 }, (_, index) => index * 4) : [0, 16, 64];
/** A start takes two seconds alone, and ten where a machine is busy. */
const START_MS_MAX = 20_000;
const END_MS_MAX = 10_000;
const TEST_MS_MAX = 180_000;

const place = scratch();
const disks = new SmallDisks(place.path);
const processes = new Bounded();
if (!canMount) process.stdout.write("left out: full disks: file systems can be mounted by root only\n");
afterEach(async () => {
  await processes.killAll();
  disks.removeAll();
});
afterAll(place.remove);

const READY = /Press Ctrl-C|"serving"|"started"/;
const up = (data: string) => ["up", "--data-dir", data, "--listen", "127.0.0.1:0"];
const apiserver = (data: string) => ["apiserver", "--data-dir", data, "--listen", "127.0.0.1:0"];
const driver = (data: string) => [
  ...["driver", "--endpoint", join(place.path, "csi.sock"), "--nodeid", "n1", "--http-endpoint", ""],
  ...["--statedir", data],
];

async function endsCleanly(process: Running, disk: string): Promise<void> {
  expect(await processes.ends(process, "SIGTERM", END_MS_MAX), process.stderr).toBeLessThan(END_MS_MAX);
  expect(process.stderr).not.toMatch(/assert|at .*\.js:\d+/i);
  expect([mountsBelow(disk), loopDevicesBelow(disk)]).toEqual([[], []]);
}

/** Ready, or ended with an error that names a path of this disk; then, after one SIGTERM, gone with nothing mounted. */
async function startsOrSaysWhy(disk: string, command: readonly string[]): Promise<string> {
  const process = processes.start(...command);
  const outcome = await processes.outcome(process, READY, START_MS_MAX);
  await endsCleanly(process, disk);
  expect(outcome, process.stderr).not.toBe("hung");
  if (outcome === "ready") return "ready";
  expect(process.stderr).toContain(disk);
  return process.stderr;
}

function kubectl(data: string, ...args: string[]): string {
  const kubeconfig = join(data, "admin.kubeconfig");
  const { stdout, stderr } = spawnSync(
    "kubectl",
    ["--kubeconfig", kubeconfig, "--request-timeout=20s", ...args],
    { encoding: "utf8" },
  );
  return stdout + stderr;
}

/** Objects until there is no room for one, and updates, which may use the reserve: now there is none for any. */
function useUp(data: string): void {
  const content = Array.from({ length: 20 }, (_, index) => `--from-literal=k${index}=${"x".repeat(100)}`);
  const made = (name: string) => kubectl(data, "create", "configmap", name, ...content);
  for (let count = 0; count < 200 && !/disk is full/.test(made(`c${count}`)); count++);
  for (let count = 0; count < 4; count++)
    expect(kubectl(data, "annotate", "--overwrite", "configmap/c0", `a=${count}`)).toContain("annotated");
}

describe.skipIf(!canMount)("a full disk", { timeout: TEST_MS_MAX }, () => {
  const types: readonly DiskType[] = everyStep ? ["tmpfs", "ext4"] : ["tmpfs"];
  for (const freeKb of FREE_KB)
    test.each(types)(`of %s with ${freeKb} kB free: up, the first start and a later one`, async (type) => {
      const disk = disks.make(`up-${type}-${freeKb}`, type, 64);
      expect(await startsOrSaysWhy(disk, up(join(disk, "later")))).toBe("ready");
      fill(disk, freeKb);

      const later = await startsOrSaysWhy(disk, up(join(disk, "later")));
      const first = await startsOrSaysWhy(disk, up(join(disk, "first")));

      expect(first).toMatch(/disk is full/);
      if (type === "tmpfs") expect(later).toBe("ready");
    });

  // The store is made of what the certificates leave: about 10 kB of these.
  test.each([12, 16, 20, 24])(
    "of ext4 with %i kB free: the first start of apiserver says so, and how much it needs",
    async (freeKb) => {
      const disk = disks.make(`first-${freeKb}`, "ext4", 16);
      fill(disk, freeKb);

      expect(await startsOrSaysWhy(disk, apiserver(join(disk, "data")))).toMatch(/disk is full \(\d+ kB/);
    },
  );

  test.each([
    ["apiserver", 0, apiserver],
    ["up", 16, up],
  ] as const)(
    "of ext4: a later start of %s with %i kB free serves, and says how much it needs",
    async (name, freeKb, command) => {
      const disk = disks.make(`told-${name}`, "ext4", 64);
      const data = join(disk, "data");
      const before = processes.start(...command(data));
      expect(await processes.outcome(before, READY, START_MS_MAX), before.stderr).toBe("ready");
      fill(disk, freeKb);
      useUp(data);
      await endsCleanly(before, disk);
      fill(disk, freeKb);
      const process = processes.start(...command(data));

      expect(await processes.outcome(process, READY, START_MS_MAX), process.stderr).toBe("ready");
      expect(process.stdout + process.stderr).toMatch(
        /at revision \d+; .*disk is full \(\d+ kB free, \d+ kB needed with the reserve\); objects can be read, deleted/,
      );
      await endsCleanly(process, disk);
    },
  );

  test("of ext4 with nothing free: a store whose lock file is gone says which file it needs room for", async () => {
    const disk = disks.make("no-lock", "ext4", 16);
    const data = join(disk, "data");
    expect(await startsOrSaysWhy(disk, apiserver(data))).toBe("ready");
    rmSync(join(data, "store", "lock.mdb"));
    fill(disk, 0);

    expect(await startsOrSaysWhy(disk, apiserver(data))).toMatch(
      /lock\.mdb: the disk is full \(\d+ kB free, 9 kB needed\)/,
    );
  });

  test.each([
    ["tmpfs", "apiserver", apiserver],
    ["ext4", "apiserver", apiserver],
    ["ext4", "driver", driver],
    ["ext4", "up", up],
  ] as const)(
    "of %s with nothing free: the first start of %s says so, and where",
    async (type, name, command) => {
      const disk = disks.make(`none-${name}-${type}`, type, 16);
      fill(disk, 0);

      const said = await startsOrSaysWhy(disk, command(join(disk, "a", "b")));

      expect(said).toMatch(/disk is full \(\d+ kB and \d+ files free\); make room/);
      expect(said).not.toMatch(/ENOENT/);
    },
  );
});

test.skipIf(!canMount)("a driver serves on a tmpfs with nothing free: names take no room there", async () => {
  const disk = disks.make("none-driver-tmpfs", "tmpfs", 16);
  fill(disk, 0);

  expect(await startsOrSaysWhy(disk, driver(join(disk, "a", "b")))).toBe("ready");
});

describe.skipIf(!canMount)("a read-only disk", { timeout: TEST_MS_MAX }, () => {
  test.each([
    ["apiserver", apiserver],
    ["driver", driver],
    ["up", up],
  ] as const)(
    "refuses a first and a later start of %s, with the place and the way out",
    async (name, command) => {
      const disk = disks.make(`ro-${name}`, "ext4", 64);
      expect(await startsOrSaysWhy(disk, command(join(disk, "later")))).toBe("ready");
      run("mount", "-o", "remount,ro", disk);

      for (const data of ["later", "first"]) {
        const said = await startsOrSaysWhy(disk, command(join(disk, data)));

        expect(said).toMatch(/read-only; mount it for writing/);
        expect(said).toContain(join(disk, data));
      }
    },
  );
});

describe.skipIf(!canMount)("up at work", { timeout: TEST_MS_MAX }, () => {
  const claimAndPod = (name: string) => `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name} }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 20Mi } } }
---
apiVersion: v1
kind: Pod
metadata: { name: ${name} }
spec:
  containers: [{ name: main, image: none, volumeMounts: [{ name: data, mountPath: /data }] }]
  volumes: [{ name: data, persistentVolumeClaim: { claimName: ${name} } }]
`;

  test("a disk that fills: refusals are clear, the process goes on, with room it works again, and ends clean", async () => {
    const disk = disks.make("fills", "ext4", 192);
    const data = join(disk, "data");
    const file = (name: string) => {
      const path = join(place.path, `${name}.yaml`);
      writeFileSync(path, claimAndPod(name));
      return path;
    };
    const process = processes.start(...up(data));
    expect(await processes.outcome(process, READY, START_MS_MAX)).toBe("ready");
    kubectl(data, "apply", "-f", file("before"));
    expect(kubectl(data, "wait", "--for=condition=Ready", "pod/before", "--timeout=40s")).toContain("met");
    expect(mountsBelow(data).length).toBeGreaterThan(0);

    fill(disk, 0);
    const big = join(place.path, "big.txt");
    writeFileSync(big, "x".repeat(900_000));
    const made = kubectl(data, "create", "configmap", "big", `--from-file=${big}`);
    const during = kubectl(data, "apply", "-f", file("during"));
    const listed = kubectl(data, "get", "pods");
    await new Promise((resolve) => setTimeout(resolve, 3_000));

    expect(made).toMatch(/disk is full .*make room on the disk/);
    expect(listed).toMatch(/before/);
    expect(process.stderr).toBe("");

    makeRoom(disk);
    if (!/pod\/during created/.test(during)) kubectl(data, "apply", "-f", file("during"));
    expect(kubectl(data, "wait", "--for=condition=Ready", "pod/during", "--timeout=60s")).toContain("met");
    const mounted = mountsBelow(data).filter((path) => path.includes("kubernetes.io~csi"));
    writeFileSync(join(mounted.at(-1) ?? "", "note"), "kept");
    expect(readFileSync(join(mounted.at(-1) ?? "", "note"), "utf8")).toBe("kept");

    fill(disk, 0);
    expect(await processes.ends(process, "SIGINT", END_MS_MAX)).toBeLessThan(END_MS_MAX);
    expect(process.stderr).toBe("");
    expect([mountsBelow(disk), loopDevicesBelow(disk)]).toEqual([[], []]);
  });

  test.each(everyStep ? [100, 300, 500, 800, 1_200, 2_000, 3_000] : [300, 1_000, 2_000])(
    "SIGTERM %i ms after a start on a disk with 16 kB free: it ends, and leaves nothing mounted",
    async (afterMs) => {
      const disk = disks.make(`term-${afterMs}`, "tmpfs", 64);
      expect(await startsOrSaysWhy(disk, up(join(disk, "data")))).toBe("ready");
      fill(disk, 16);
      const process = processes.start(...up(join(disk, "data")));
      await new Promise((resolve) => setTimeout(resolve, afterMs));

      await endsCleanly(process, disk);

      expect(existsSync(join(disk, "data", "mooring.lock"))).toBe(false);
    },
  );
});
