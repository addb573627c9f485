import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Bounded } from "../e2e/bounded.ts";
import { scratch } from "../e2e/mooring.ts";
import { canMount, run, SmallDisks } from "../e2e/small-disk.ts";
import { loopDevicesBelow, mountsBelow } from "../e2e/up-world.ts";

/**
 * A file system that the kernel makes read-only while a server writes to it, as it does when a disk fails: reads and watches
 * go on, a write is refused with the place and the way out, `/readyz` says it too, and after a repair a start has all that
 * was acknowledged. Nobody can mount such a disk for writing while its files are open, so that a restart it is.
 */
const TEST_MS_MAX = 180_000;
/** Such a namespace lives for 60 s at most. */
const RELEASE_MS_MAX = 90_000;
const START_MS_MAX = 20_000;
const END_MS_MAX = 10_000;

const place = scratch();
const disks = new SmallDisks(place.path);
const processes = new Bounded();
const watching: ChildProcess[] = [];
if (!canMount) process.stdout.write("left out: failing disks: file systems can be mounted by root only\n");
afterEach(async () => {
  for (const child of watching.splice(0)) child.kill("SIGKILL");
  await processes.killAll();
  disks.removeAll();
});
afterAll(place.remove);

/** What the kernel does when it finds that a file system is damaged. */
function failDisk(disk: string): void {
  const device = basename(run("findmnt", "--noheadings", "--output", "SOURCE", disk).trim());
  writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, "1");
}

/**
 * As an administrator does, with nobody at work on it. A mount namespace that a test beside this one made has a copy of every
 * mount of its moment: as long as it lives the kernel has the failed file system, and would give it again, read-only.
 */
async function repairDisk(disk: string): Promise<void> {
  run("umount", disk);
  const device = () => run("losetup", "--associated", `${disk}.raw`);
  await expect.poll(device, { timeout: RELEASE_MS_MAX, interval: 100 }).toBe("");
  spawnSync("e2fsck", ["-f", "-y", `${disk}.raw`]);
  run("mount", "-o", "loop", `${disk}.raw`, disk);
}

function kubectlOf(data: string) {
  const args = ["--kubeconfig", join(data, "admin.kubeconfig"), "--request-timeout=10s"];
  const kubectl = (...more: string[]) => {
    const { stdout, stderr } = spawnSync("kubectl", [...args, ...more], { encoding: "utf8" });
    return stdout + stderr;
  };
  const watch = (...more: string[]) => {
    const child = spawn("kubectl", ["--kubeconfig", join(data, "admin.kubeconfig"), "get", "-w", ...more]);
    watching.push(child);
    let said = "";
    child.stdout.on("data", (bytes: Buffer) => (said += bytes.toString()));
    return { said: () => said, isRunning: () => child.exitCode === null };
  };
  return { kubectl, watch };
}

describe.skipIf(!canMount)("a disk that becomes read-only", { timeout: TEST_MS_MAX }, () => {
  test.each([
    ["apiserver", /"serving"/],
    ["up", /Press Ctrl-C/],
  ])(
    "under %s: reads go on, writes say why, it ends, and after the repair everything is there",
    async (command, ready) => {
      const disk = disks.make(`fails-${command}`, "ext4", 128);
      const data = join(disk, "data");
      const start = () => processes.start(command, "--data-dir", data, "--listen", "127.0.0.1:0");
      const server = start();
      expect(await processes.outcome(server, ready, START_MS_MAX), server.stderr).toBe("ready");
      const { kubectl, watch } = kubectlOf(data);
      for (let index = 0; index < 5; index++) kubectl("create", "configmap", `kept-${index}`);
      const watched = watch("configmaps");
      await expect.poll(() => watched.said(), { timeout: 10_000 }).toContain("kept-4");

      failDisk(disk);
      const writes = [1, 2, 3].map((index) => kubectl("create", "configmap", `refused-${index}`));
      const deletion = kubectl("delete", "configmap", "kept-0");

      for (const answer of [...writes, deletion]) {
        expect(answer).toContain(join(data, "store", "data.mdb"));
        expect(answer).toMatch(/file system has become read-only .*start again/);
      }
      expect(kubectl("get", "configmaps")).toMatch(/kept-0[^]*kept-4/);
      expect(kubectl("get", "--raw", "/readyz?verbose")).toMatch(/read-only|not ready|store/);
      expect(kubectl("get", "--raw", "/livez")).toBe("ok");
      expect([watched.isRunning(), watched.said()]).toEqual([true, expect.not.stringContaining("refused")]);
      expect(await processes.ends(server, "SIGTERM", END_MS_MAX), server.stderr).toBeLessThan(END_MS_MAX);
      expect(server.stderr).not.toMatch(/assert|at .*\.js:\d+/i);
      expect([mountsBelow(disk), loopDevicesBelow(disk)]).toEqual([[], []]);

      await repairDisk(disk);
      const again = start();
      expect(await processes.outcome(again, ready, START_MS_MAX), again.stderr).toBe("ready");
      const names = kubectl("get", "configmaps", "-o", "name");
      expect(names.match(/kept-\d/g)).toEqual(["kept-0", "kept-1", "kept-2", "kept-3", "kept-4"]);
      expect(names).not.toContain("refused");
      expect(kubectl("create", "configmap", "after")).toContain("created");
      expect(await processes.ends(again, "SIGTERM", END_MS_MAX)).toBeLessThan(END_MS_MAX);
    },
  );
});
