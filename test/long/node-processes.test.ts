import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createLinuxHost } from "../../src/node/linux-host.ts";
import {
  givenVolume,
  holderBelow,
  nodeProcessesContract,
  type ContainerSketch,
} from "../contract/node-processes.ts";

/** Real processes in real mount namespaces; whatever is started or mounted here is gone at the end. */

const isRoot = process.getuid?.() === 0 && process.platform === "linux";
const hasPython = spawnSync("python3", ["-c", "import ctypes"]).status === 0;
const base = realpathSync(mkdtempSync(join(tmpdir(), "node-processes-")));
const clock = createSystemClock();
const host = createLinuxHost({ clock });
const loops: string[] = [];
const children: ChildProcess[] = [];
let roots = 0;

function givenRoot(): string {
  const root = join(base, String(roots++));
  mkdirSync(root);
  return root;
}

async function device(sizeBytes: number): Promise<string> {
  const image = `${base}/${roots++}.image`;
  writeFileSync(image, "");
  truncateSync(image, sizeBytes);
  const found = execFileSync("losetup", ["--find", "--show", image], { encoding: "utf8" }).trim();
  loops.push(found);
  return found;
}

/** A shell script in a mount namespace of its own; lives until `end`, and has said `ready` when this resolves. */
async function inNamespace(script: string, { propagation = "private" } = {}) {
  const args = ["--mount", "--propagation", propagation, "sh", "-ec", `${script}\necho ready\nexec sleep 60`];
  return running(spawn("unshare", args, { stdio: ["ignore", "pipe", "ignore"], detached: true }));
}

/** Each leads a group of its own, so that nothing it started outlives it. */
function killGroup({ pid = 0 }: ChildProcess): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Ended by itself.
  }
}

async function running(child: ChildProcess) {
  children.push(child);
  await Promise.race([
    once(child.stdout!, "data"),
    once(child, "exit").then(([code]) => {
      throw new Error(`the process ended before it was ready: exit ${String(code)}`);
    }),
  ]);
  return {
    pid: child.pid ?? 0,
    end: async () => {
      const gone = once(child, "exit");
      killGroup(child);
      await gone;
    },
  };
}

/**
 * As a runtime does it: a root of its own, which hears of nothing, with the volumes bound into it, and nothing else of the
 * host. Bound from outside first: in the new namespace the old root is gone.
 */
async function container({ binds = [], opens = [], worksIn }: ContainerSketch) {
  if (worksIn !== undefined)
    return running(
      spawn("sh", ["-ec", "echo ready; exec sleep 60"], {
        cwd: worksIn,
        stdio: ["ignore", "pipe", "ignore"],
        detached: true,
      }),
    );
  const root = givenRoot();
  const lines = [
    `mount -t tmpfs tmpfs ${root}`,
    `mkdir ${root}/old ${root}/data`,
    ...binds.flatMap((path, at) => [`mkdir ${root}/data/${at}`, `mount --bind ${path} ${root}/data/${at}`]),
    ...opens.map((path, at) => `exec ${at + 5}<${path}`),
    `for d in bin lib lib64 usr proc; do [ -e /$d ] && mkdir -p ${root}/$d && mount --rbind /$d ${root}/$d; done`,
    `cd ${root} && pivot_root . old && cd /`,
    "umount -l /old",
  ];
  return inNamespace(lines.join("\n"));
}

describe.skipIf(!isRoot)("the real kernel", () => {
  nodeProcessesContract("this machine", async () => ({ host, root: givenRoot(), device, container }));

  /** Below a shared mount, as the root directory of an agent is. */
  async function givenShared() {
    const root = givenRoot();
    await host.mounts.makeShared(root);
    const path = await givenVolume({ host, root, device }, "filesystem");
    return { root, path };
  }

  test("a service whose namespace follows the host's (PrivateMounts) has nothing: what it sees goes with the host's", async () => {
    const { root, path } = await givenShared();
    const service = await inNamespace("true", { propagation: "slave" });

    expect(await holderBelow(host, root)).toBeUndefined();
    await host.mounts.unmount(path);
    expect(execFileSync("cat", [`/proc/${service.pid}/mountinfo`], { encoding: "utf8" })).not.toContain(path);
    await service.end();
  });

  test("nor a driver in a container, which sees the root directory elsewhere and mounts there itself", async () => {
    const { root } = await givenShared();
    const elsewhere = givenRoot();
    const driver = await inNamespace(`mount --bind ${root} ${elsewhere}\nmount --make-rshared ${elsewhere}`, {
      propagation: "unchanged",
    });

    expect(await holderBelow(host, root)).toBeUndefined();
    await driver.end();
    execFileSync("sh", ["-c", `while umount ${elsewhere} 2>/dev/null; do :; done`]);
  });

  test("a namespace that hears of another which hears of the host's has nothing either", async () => {
    const { root } = await givenShared();
    const first = await inNamespace("mount --make-rslave /\nmount --make-rshared /", {
      propagation: "unchanged",
    });
    const second = await running(
      spawn(
        "nsenter",
        [
          ...["--mount", `--target=${first.pid}`, "unshare", "--mount", "--propagation", "slave"],
          ...["sh", "-ec", "echo ready; exec sleep 60"],
        ],
        { stdio: ["ignore", "pipe", "ignore"], detached: true },
      ),
    );

    expect(await holderBelow(host, root)).toBeUndefined();
    await second.end();
    await first.end();
  });

  test("a namespace with a private copy of the host's mounts does have it: the copy outlives the host's unmount", async () => {
    const { root, path } = await givenShared();
    const copy = await inNamespace("true");

    expect(await holderBelow(host, root)).toMatchObject({
      by: { pid: copy.pid },
      how: expect.stringContaining(path) as string,
    });
    await host.mounts.unmount(path);
    expect(execFileSync("cat", [`/proc/${copy.pid}/mountinfo`], { encoding: "utf8" })).toContain(path);
    await copy.end();
  });

  test("a file that is open in a volume is told with its path, by whoever has it", async () => {
    const root = givenRoot();
    const path = await givenVolume({ host, root, device }, "tmpfs");
    writeFileSync(`${path}/data`, "x");
    const reader = await running(
      spawn("sh", ["-ec", `exec 7<${path}/data; cd /; echo ready; exec sleep 60`], {
        stdio: ["ignore", "pipe", "ignore"],
        detached: true,
      }),
    );

    const { users } = await host.processes.scan({ filesystems: [], devices: [], mountPoints: [path] });

    expect(users).toMatchObject([{ pid: reader.pid, mountPoint: path, how: `has ${path}/data open` }]);
    await expect(host.mounts.unmount(path)).rejects.toThrow(/busy/);
    await reader.end();
    await host.mounts.unmount(path);
  });

  /** Python knows the calls that no shell has. */
  async function python(lines: readonly string[]) {
    const script = [
      "import ctypes, os, threading, time",
      "libc = ctypes.CDLL(None, use_errno=True)",
      ...lines,
    ];
    return running(
      spawn("unshare", ["--mount", "python3", "-c", script.join("\n")], {
        stdio: ["ignore", "pipe", "ignore"],
        detached: true,
      }),
    );
  }
  const READY = `print("ready", flush=True)`;
  const EXIT_THREAD = `libc.syscall(${process.arch === "arm64" ? 93 : 60}, 0)`;

  test.skipIf(!hasPython)(
    "a process whose first thread has ended: others of it have the volume still",
    async () => {
      const { root, path } = await givenShared();
      const headless = await python([
        `def stay():\n  time.sleep(0.2)\n  ${READY}\n  time.sleep(60)`,
        "threading.Thread(target=stay, daemon=True).start()",
        EXIT_THREAD,
      ]);

      expect(await holderBelow(host, root)).toMatchObject({
        by: { pid: headless.pid },
        how: expect.stringContaining(path) as string,
      });
      await headless.end();
    },
  );

  test.skipIf(!hasPython)(
    "a process whose first thread has ended: others of it have the device open still",
    async () => {
      const mine = await device(1 << 20);
      const number = (await host.files.statTarget(mine))?.deviceNumber ?? "";
      const headless = await python([
        `fd = os.open("${mine}", os.O_RDONLY)`,
        `def stay():\n  time.sleep(0.2)\n  ${READY}\n  time.sleep(60)`,
        "threading.Thread(target=stay, daemon=True).start()",
        EXIT_THREAD,
      ]);

      const { openers } = await host.processes.scan({ filesystems: [], devices: [number] });
      expect(openers.map(({ pid }) => pid)).toEqual([headless.pid]);
      await headless.end();
    },
  );

  test.skipIf(!hasPython)("a thread in a namespace of its own has what is mounted there", async () => {
    const { root } = await givenShared();
    // As a runtime does that copies files for somebody: the others of its process stay where they are.
    const threads = await running(
      spawn(
        "python3",
        [
          "-c",
          [
            "import ctypes, threading, time",
            "libc = ctypes.CDLL(None, use_errno=True)",
            `def stay():\n  assert libc.unshare(0x00020200) == 0\n  assert libc.mount(b"none", b"/", None, 0x44000, None) == 0\n  ${READY}\n  time.sleep(60)`,
            "threading.Thread(target=stay, daemon=True).start()",
            "time.sleep(60)",
          ].join("\n"),
        ],
        { stdio: ["ignore", "pipe", "ignore"], detached: true },
      ),
    );

    expect((await holderBelow(host, root))?.by.pid).toBe(threads.pid);
    await threads.end();
  });

  test.skipIf(!hasPython)(
    "a namespace whose first process sees only a part of it (chroot): what the others see counts",
    async () => {
      const { root, path } = await givenShared();
      const jail = givenRoot();
      const chrooted = await python([
        `if os.fork() == 0:\n  time.sleep(60)`,
        // With something mounted in it: where there is nothing, it sees no mount at all.
        `assert libc.mount(b"tmpfs", b"${jail}", b"tmpfs", 0, None) == 0`,
        `os.chroot("${jail}")`,
        READY,
        "time.sleep(60)",
      ]);

      expect(await holderBelow(host, root)).toMatchObject({ how: expect.stringContaining(path) as string });
      await chrooted.end();
    },
  );

  test("whoever works below it in the agent's own namespace keeps it from being unmounted", async () => {
    const { root, path } = await givenShared();
    const shell = await running(
      spawn("sh", ["-ec", `cd ${path}/sub; echo ready; exec sleep 60`], {
        stdio: ["ignore", "pipe", "ignore"],
        detached: true,
      }),
    );

    expect(await holderBelow(host, root)).toBeUndefined();
    await expect(host.mounts.unmount(path)).rejects.toMatchObject({ code: "Busy" });
    await shell.end();
    await host.mounts.unmount(path);
  });

  test("a look has a deadline: a child that does not answer is given up, and the next look has a new one", async () => {
    const impatient = createLinuxHost({ clock }, { lookTimeoutMs: 1 });

    await expect(impatient.processes.scan({ filesystems: [], devices: [] })).rejects.toMatchObject({
      code: "TimedOut",
    });
    impatient.close();
  });

  test("2,000 processes in 50 namespaces more are looked at in less than five seconds, open files and all", async () => {
    const { root, path } = await givenShared();
    const crowd: Awaited<ReturnType<typeof inNamespace>>[] = [];
    // The last of each takes the others along.
    const script = "for i in $(seq 39); do sleep 60 >/dev/null 2>&1 & done";
    for (let at = 0; at < 50; at++) crowd.push(await inNamespace(script, { propagation: "slave" }));
    const last = await container({ binds: [path] });
    await host.processes.scan({ filesystems: [], devices: [] });

    const plainMs = await timed(() => holderBelow(host, root));
    const filesMs = await timed(() => host.processes.scan({ filesystems: [], devices: ["7:255"] }));

    expect((await holderBelow(host, root))?.by.pid).toBe(last.pid);
    const { namespaces } = await host.processes.scan({ filesystems: [], devices: [] });
    process.stderr.write(
      `a look: ${Math.round(plainMs)} ms, with open files ${Math.round(filesMs)} ms, ${namespaces.length} namespaces\n`,
    );
    expect(Math.max(plainMs, filesMs)).toBeLessThan(5_000);
    for (const { end } of [last, ...crowd]) await end();
  }, 60_000);
});

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

afterAll(async () => {
  for (const child of children) if (child.exitCode === null && child.signalCode === null) killGroup(child);
  const table = await host.mounts.table();
  for (const { path } of [...table.below(base)].reverse())
    await host.mounts.unmount(path, { lazy: true }).catch(() => undefined);
  for (const loop of loops) execFileSync("sh", ["-c", `losetup -d ${loop} 2>/dev/null || true`]);
  host.close();
  rmSync(base, { recursive: true, force: true });
});
