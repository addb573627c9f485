import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { HostError } from "../../src/node/host.ts";
import { createLinuxHost } from "../../src/node/linux-host.ts";
import { parseMountInfo } from "../../src/node/mount-table.ts";
import { nodeHostContract } from "../contract/node-host.ts";

/** The host on this machine, in a directory of its own below the temporary one; all that is left of it is taken down. */

const isRoot = process.getuid?.() === 0 && process.platform === "linux";
const base = realpathSync(mkdtempSync(join(tmpdir(), "node-host-")));
const clock = createSystemClock();
const host = createLinuxHost({ clock });
/** For what never answers: its deadline is what these tests wait for. */
const impatient = createLinuxHost({ clock }, { lookTimeoutMs: 700 });
const loops: string[] = [];
let roots = 0;
let looked = 0;

function givenDirectory(): string {
  const root = join(base, String(roots++));
  mkdirSync(root);
  return root;
}

/** A mount whose server never says a word: nobody reads the other end of /dev/fuse. Closing it kills the server. */
function givenDeadMount(): { readonly path: string; kill(): void } {
  const path = join(givenDirectory(), "dead");
  mkdirSync(path);
  const server = openSync("/dev/fuse", "r+");
  const options = "fd=3,rootmode=40000,user_id=0,group_id=0";
  execFileSync("mount", ["-i", "-t", "fuse", "-o", options, "none", path], {
    stdio: ["ignore", "ignore", "inherit", server],
  });
  return { path, kill: () => closeSync(server) };
}

/** Its child is there and has answered: from now on only what hangs is late. */
async function warmUp(): Promise<void> {
  // A path of its own each time: one that hung a moment ago is refused at once.
  await impatient.files.stat(`${base}/${looked++}`).catch(() => warmUp());
}

describe.skipIf(!isRoot)("the real host", () => {
  nodeHostContract("this machine", async () => {
    const root = givenDirectory();
    return {
      host,
      root,
      async device(sizeBytes) {
        const image = `${root}.image`;
        writeFileSync(image, "");
        truncateSync(image, sizeBytes);
        const device = execFileSync("losetup", ["--find", "--show", image], { encoding: "utf8" }).trim();
        loops.push(device);
        return device;
      },
    };
  });

  test("a look at a dead mount ends at its deadline, and delays no look at anything else", async () => {
    const dead = givenDeadMount();
    await host.files.stat(base);
    await warmUp();
    const looks = ["stat", "usage", "list", "realPath"] as const;
    const ended: string[] = [];

    const hung = looks.map((look) =>
      impatient.files[look](`${dead.path}/${look === "realPath" ? "x" : ""}`).then(
        () => ended.push("answered"),
        (error: unknown) => ended.push(error instanceof HostError ? error.code : String(error)),
      ),
    );
    for (let others = 0; others < 20; others++) await impatient.files.stat(base);
    ended.push("the others");
    await Promise.all(hung);

    expect(ended).toEqual(["the others", ...looks.map(() => "TimedOut")]);
    expect(await host.mounts.isMountPoint(dead.path)).toBe(true);
    dead.kill();
    await expect(host.files.stat(dead.path)).rejects.toMatchObject({ code: "Corrupted" });
    await host.mounts.cleanUp(dead.path, { timeoutMs: 5_000, force: true });
    expect(await host.files.stat(dead.path)).toBeUndefined();
  });

  test("40 dead mounts: every look ends, healthy ones are answered meanwhile, never more than 8 processes", async () => {
    const dead = Array.from({ length: 40 }, () => givenDeadMount());
    const own = createLinuxHost({ clock }, { lookTimeoutMs: 700 });
    await own.files.stat(base);
    let most = 0;
    const counting = setInterval(() => (most = Math.max(most, own.slots.taken)), 1);

    for (let round = 0; round < 2; round++) {
      const ended = dead.map(({ path }) =>
        own.files.stat(`${path}/x`).catch((error: unknown) => (error as HostError).code),
      );
      for (let look = 0; look < 20; look++) expect(await own.files.stat(base)).toBeDefined();
      expect(await Promise.all(ended)).toEqual(dead.map(() => "TimedOut"));
    }
    expect(await own.files.stat(base)).toBeDefined();

    clearInterval(counting);
    expect(most).toBeLessThanOrEqual(3);
    for (const one of dead) {
      await own.mounts.unmount(one.path, { lazy: true });
      one.kill();
    }
    own.close();
  });

  describe("nothing is formatted that was not read and found blank", () => {
    function givenImage(name: string): { readonly image: string; device(): string; sum(): string } {
      const image = join(givenDirectory(), name);
      writeFileSync(image, "");
      truncateSync(image, 64 << 20);
      return {
        image,
        device() {
          const device = execFileSync("losetup", ["--find", "--show", image], { encoding: "utf8" }).trim();
          loops.push(device);
          return device;
        },
        sum: () => createHash("sha256").update(readFileSync(image)).digest("hex"),
      };
    }
    const mountOf = (source: string, more = {}) => {
      const target = join(givenDirectory(), "target");
      mkdirSync(target);
      return { source, target, type: "ext4", options: [], ...more };
    };

    test("a filesystem that blkid did not see, as when the disk could not be read, is left as it is", async () => {
      const disk = givenImage("hidden");
      const device = disk.device();
      const made = mountOf(device);
      await host.mounts.formatAndMount(made);
      await host.mounts.cleanUp(made.target);
      const tools = givenDirectory();
      writeFileSync(join(tools, "blkid"), "#!/bin/sh\nexit 2\n", { mode: 0o755 });
      const blind = createLinuxHost(
        { clock },
        { toolDirectories: [tools, "/usr/sbin", "/usr/bin", "/sbin", "/bin"] },
      );
      const before = disk.sum();

      await expect(blind.mounts.formatAndMount(mountOf(device))).rejects.toThrow(
        "without any known signature, so it is neither mounted nor formatted",
      );

      expect(disk.sum()).toBe(before);
      blind.close();
    });

    test("raw data in the middle of a disk without a signature is somebody's", async () => {
      const disk = givenImage("raw");
      const file = openSync(disk.image, "r+");
      writeSync(file, Buffer.from("rows"), 0, 4, 30 << 20);
      closeSync(file);
      const before = disk.sum();

      await expect(host.mounts.formatAndMount(mountOf(disk.device()))).rejects.toThrow(
        `data at byte ${30 << 20}`,
      );

      expect(disk.sum()).toBe(before);
    });

    test("a disk that was mounted here before is not formatted, however blank it seems; a new one is", async () => {
      const disk = givenImage("before");
      const device = disk.device();
      const before = disk.sum();

      await expect(host.mounts.formatAndMount(mountOf(device, { mayFormat: false }))).rejects.toThrow(
        "held a filesystem when it was mounted here before",
      );
      expect(disk.sum()).toBe(before);

      const request = mountOf(device);
      await host.mounts.formatAndMount(request);
      await host.mounts.cleanUp(request.target);
    });
  });

  test("a hundred trees removed at once take one process, and all are gone", async () => {
    const root = givenDirectory();
    const own = createLinuxHost({ clock });
    const trees = Array.from({ length: 100 }, (_, n) => join(root, String(n)));
    for (const tree of trees) {
      mkdirSync(join(tree, "a/b"), { recursive: true });
      writeFileSync(join(tree, "a/b/c"), "");
    }
    let most = 0;

    await Promise.all(
      trees.map(async (tree) => {
        await own.files.removeTree(tree);
        most = Math.max(most, own.slots.taken);
      }),
    );

    expect(most).toBe(1);
    expect(readdirSync(root)).toEqual([]);
    own.close();
  });

  test("a walk over a dead mount is given up as soon as its caller does", async () => {
    const dead = givenDeadMount();
    const caller = new AbortController();

    const walk = host.files.diskUsage(dead.path, caller.signal);
    caller.abort(new Error("the pod is gone"));

    await expect(walk).rejects.toThrow("the pod is gone");
    await host.mounts.unmount(dead.path, { lazy: true });
    dead.kill();
  });

  test("a child that stops answering is replaced", async () => {
    await warmUp();
    const [pid = 0] = impatient.probeChildren;
    process.kill(pid, "SIGSTOP");

    await expect(impatient.files.stat(base)).rejects.toMatchObject({ code: "TimedOut" });
    await warmUp();

    await expect.poll(() => impatient.probeChildren).not.toContain(pid);
  });

  test("a container that swaps directories for links to the host all the time gets nothing of the host", async () => {
    const root = givenDirectory();
    mkdirSync(join(root, "v/d/in"), { recursive: true });
    mkdirSync(join(root, "host/in"), { recursive: true });
    writeFileSync(join(root, "host/in/secret"), "x", { mode: 0o600 });
    const swaps = `const fs = require("fs"); process.chdir(${JSON.stringify(join(root, "v"))}); process.send("on");
      for (const endMs = Date.now() + 30_000; Date.now() < endMs; ) try { fs.renameSync("d", "e"); fs.symlinkSync("../host", "d"); fs.unlinkSync("d"); fs.renameSync("e", "d"); }
      catch { fs.rmSync("d", { recursive: true, force: true }); fs.mkdirSync("e/in", { recursive: true }); fs.renameSync("e", "d"); }`;
    const attacker = spawn(process.execPath, ["--eval", swaps], {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    onTestFinished(() => void attacker.kill("SIGKILL"));
    await once(attacker, "message");

    const outcomes = { bound: 0, refused: 0 };
    for (let tries = 0; tries < 25; tries++) {
      const target = join(root, "sub", String(tries));
      const request = { root: join(root, "v"), subPath: "d/in", target, readOnly: false };
      const isBound = await host.files.bindSubPath(request).then(
        () => true,
        () => false,
      );
      outcomes[isBound ? "bound" : "refused"]++;
      if (isBound) {
        expect(await host.files.list(target)).toEqual([]);
        await host.mounts.cleanUp(target);
      }
      const group = { path: join(root, "v"), gid: 3000, readOnly: false, onRootMismatch: false };
      await host.files.applyGroup({ ...group, signal: new AbortController().signal });
    }
    // Still at it: an attacker that had given up would prove nothing.
    expect(attacker.exitCode).toBeNull();

    expect(outcomes.bound + outcomes.refused).toBe(25);
    expect(statSync(join(root, "host/in/secret"))).toMatchObject({ gid: 0 });
    expect(statSync(join(root, "host/in"))).toMatchObject({ gid: 0 });
  });

  test("a program's exit code and output are answers; one that does not end is ended", async () => {
    const script = "cat; echo told >&2; exit 3";
    expect(await host.programs.run("sh", ["-c", script], { timeoutMs: 5_000, stdin: "said" })).toEqual({
      exitCode: 3,
      stdout: "said",
      stderr: "told\n",
    });
    await expect(host.programs.run("sleep", ["600"], { timeoutMs: 50 })).rejects.toMatchObject({
      code: "TimedOut",
    });
    const caller = new AbortController();
    const run = host.programs.run("/usr/bin/sleep", ["600"], { timeoutMs: 60_000, signal: caller.signal });
    caller.abort();
    await expect(run).rejects.toMatchObject({ code: "TimedOut" });
  });

  test("a tree with a mount in it is refused before anything of it is gone", async () => {
    const root = givenDirectory();
    mkdirSync(join(root, "t/a/m"), { recursive: true });
    writeFileSync(join(root, "t/a/f"), "x");
    // A bind within one filesystem: its device number tells nothing.
    await host.mounts.bind(join(root, "t/a"), join(root, "t/a/m"), []);

    await expect(host.files.removeTree(join(root, "t"))).rejects.toMatchObject({ code: "Busy" });
    expect(readFileSync(join(root, "t/a/f"), "utf8")).toBe("x");
    expect(await host.files.diskUsage(join(root, "t"))).toMatchObject({ inodesUsed: 3 });
    await host.mounts.unmount(join(root, "t/a/m"));
  });
});

afterAll(() => {
  const left = parseMountInfo(readFileSync("/proc/self/mountinfo", "utf8")).filter(({ path }) =>
    path.startsWith(base),
  );
  for (const { path } of [...left].reverse()) execFileSync("umount", ["--lazy", path]);
  for (const device of loops) execFileSync("losetup", ["--detach", device]);
  for (const one of [host, impatient]) one.close();
  rmSync(base, { recursive: true, force: true });
});
