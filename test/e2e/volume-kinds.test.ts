import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createLinuxHost } from "../../src/node/linux-host.ts";
import type { NodeObjects } from "../../src/node/objects.ts";
import { createPaths } from "../../src/node/paths.ts";
import { createEmptyDirPlugin } from "../../src/node/plugins/empty-dir.ts";
import { createFlexVolumes } from "../../src/node/plugins/flex-volumes.ts";
import { inline, pod, setUpOf, signal, tearDownOf } from "../../src/node/plugins/plugins.testing.ts";
import { createFlexHost } from "../../src/processes/flex-host.ts";
import { createLocalWorld } from "../../src/processes/local-world.ts";

/** Kinds of volumes that need a program or a filesystem of their own, on this machine: FlexVolume drivers, huge pages. */

const isRoot = process.getuid?.() === 0 && process.platform === "linux";
const base = realpathSync(mkdtempSync(join(tmpdir(), "volume-kinds-")));
const drivers = join(base, "exec");
const image = join(base, "disk.img");
const clock = createSystemClock();
const host = createLinuxHost({ clock });
const paths = createPaths(join(base, "root"));
const objects = {
  secret: async () => ({
    metadata: {},
    type: "acme/tmp",
    data: { key: Buffer.from("very secret").toString("base64") },
  }),
  node: () => undefined,
} as unknown as NodeObjects;
const deps = { host, paths, objects, log: silentLogger, clock };

/** One that mounts for itself: a tmpfs a pod. Its answers and its words on stderr are those of drivers in the wild. */
const TMP = `#!/bin/sh
echo "$1" >> "$(dirname "$0")/calls"
case "$1" in
  init) echo '{"status":"Success","capabilities":{"attach":false,"supportsMetrics":true}}' ;;
  mount)
    case "$3" in *'"fail":"yes"'*) echo '{"status":"Failure","message":"told to fail, very secret"}'; exit 1 ;; esac
    echo "mounting $2" >&2
    mount -t tmpfs -o size=1m flex "$2" && echo '{"status":"Success"}' ;;
  unmount) umount "$2" && echo '{"status":"Success"}' ;;
  *) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`;

/** One that only finds the disk; formatting, mounting and binding it is left to the node. */
const LOOP = `#!/bin/sh
echo "$1" >> "$(dirname "$0")/calls"
case "$1" in
  init) echo '{"status":"Success","capabilities":{"attach":true}}' ;;
  waitforattach)
    dev=$(losetup --noheadings --output NAME --associated "${image}")
    [ -n "$dev" ] || dev=$(losetup --find --show "${image}")
    echo '{"status":"Success","device":"'"$dev"'"}' ;;
  *) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`;

const mounts = () =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(base));
const mountPaths = () => mounts().map((line) => line.split(" ")[4] ?? "");
const calls = (driver: string) =>
  readFileSync(join(drivers, `acme~${driver}`, "calls"), "utf8")
    .split("\n")
    .filter(Boolean);

function install(name: string, script: string): void {
  const file = join(drivers, `acme~${name}`, name);
  mkdirSync(join(drivers, `acme~${name}`), { recursive: true });
  writeFileSync(file, script);
  chmodSync(file, 0o755);
}

async function pluginOf(driver: string) {
  const world = createLocalWorld();
  const flexHost = createFlexHost(
    { clock, runProgram: (run) => world.runProgram(run) },
    { directory: drivers, env: process.env },
  );
  const flex = createFlexVolumes({ ...deps, flexHost, events: { record: () => undefined } });
  await flex.probe(signal);
  const plugin = flex.plugins().find(({ name }) => name === `acme/${driver}`);
  if (plugin === undefined) throw new Error(`driver ${driver} was not found`);
  return plugin;
}

afterAll(() => {
  for (const path of mountPaths().reverse()) execFileSync("umount", ["--lazy", path]);
  const loops = existsSync(image)
    ? execFileSync("losetup", ["--noheadings", "--output", "NAME", "--associated", image], {
        encoding: "utf8",
      })
    : "";
  for (const loop of loops.split("\n").filter(Boolean)) execFileSync("losetup", ["--detach", loop.trim()]);
  host.close();
  rmSync(base, { recursive: true, force: true });
});

describe.skipIf(!isRoot)("a FlexVolume driver that is a shell script", () => {
  beforeAll(() => {
    install("tmp", TMP);
    install("loop", LOOP);
    writeFileSync(image, "");
    truncateSync(image, 32 << 20);
  });

  test("mounts and unmounts for itself: twice is once, the group is applied, and nothing is left", async () => {
    const plugin = await pluginOf("tmp");
    const spec = inline({ name: "scratch", flexVolume: { driver: "acme/tmp", secretRef: { name: "s" } } });
    const path = plugin.mountPath(spec, "u1");

    for (let round = 0; round < 2; round++) await plugin.setUp(setUpOf(spec, { fsGroup: 4_242 }));

    expect(mounts()).toHaveLength(1);
    expect(lstatSync(path)).toMatchObject({ gid: 4_242 });
    expect(await plugin.stats?.({ spec, podUid: "u1", volumePath: path, signal })).toMatchObject({
      capacityBytes: 1 << 20,
    });
    await plugin.tearDown(tearDownOf(spec));
    await plugin.tearDown(tearDownOf(spec));
    expect(mounts()).toEqual([]);
    expect(existsSync(path)).toBe(false);
    expect(calls("tmp")).toEqual(["init", "mount", "unmount"]);
  });

  test("that fails leaves no directory, and its words lose the secret it was given", async () => {
    const plugin = await pluginOf("tmp");
    const flexVolume = { driver: "acme/tmp", secretRef: { name: "s" }, options: { fail: "yes" } };
    const spec = inline({ name: "broken", flexVolume });

    const failed = plugin.setUp(setUpOf(spec));

    await expect(failed).rejects.toThrow("told to fail, ***");
    await expect(failed).rejects.not.toThrow("very secret");
    expect(existsSync(plugin.mountPath(spec, "u1"))).toBe(false);
  });

  test("only finds the disk: it is formatted, mounted once, bound for two pods, kept across both, and let go", async () => {
    const plugin = await pluginOf("loop");
    const spec = inline({ name: "disk", flexVolume: { driver: "acme/loop", fsType: "ext4" } });
    const { device } = plugin;
    const deviceMountPath = device?.mountPath(spec) ?? "";
    const devicePath =
      (await plugin.attach?.waitForAttach({ ...setUpOf(spec), devicePath: "", timeoutMs: 10_000 })) ?? "";
    expect(devicePath).toMatch(/^\/dev\/loop\d+$/);
    const onDevice = { volume: "acme/loop/disk" as never, spec, devicePath, deviceMountPath, signal };

    await device?.mount({ ...onDevice, pod: pod(), mayBeThere: false });
    for (const podUid of ["u1", "u2"]) await plugin.setUp(setUpOf(spec, { podUid, deviceMountPath }));
    writeFileSync(join(plugin.mountPath(spec, "u1"), "note"), "kept");

    expect(readFileSync(join(plugin.mountPath(spec, "u2"), "note"), "utf8")).toBe("kept");
    expect(mountPaths().sort()).toEqual(
      [deviceMountPath, plugin.mountPath(spec, "u1"), plugin.mountPath(spec, "u2")].sort(),
    );
    expect(await plugin.findStaged?.()).toMatchObject([{ volume: "acme/loop/disk", path: deviceMountPath }]);
    for (const podUid of ["u1", "u2"]) await plugin.tearDown(tearDownOf(spec, podUid));
    await device?.unmount(onDevice);
    expect(mounts()).toEqual([]);
    expect(existsSync(deviceMountPath)).toBe(false);
    // What it does not support it is asked for once.
    expect(calls("loop").filter((verb) => verb === "mount")).toHaveLength(1);
  });

  test("parts of it stay parts of it: a link that leads out of the volume is refused as a subPath", async () => {
    const plugin = await pluginOf("tmp");
    const spec = inline({ name: "parts", flexVolume: { driver: "acme/tmp" } });
    const root = plugin.mountPath(spec, "u1");
    await plugin.setUp(setUpOf(spec));
    const outside = join(base, "outside");
    mkdirSync(outside);
    symlinkSync(outside, join(root, "link"));
    symlinkSync("../../../../../../../etc", join(root, "up"));
    const bind = (subPath: string) =>
      host.files.bindSubPath({ root, subPath, target: join(base, "part"), readOnly: false });

    for (const subPath of ["link", "link/deep", "up", "up/shadow", "../escape", "a/../../b"])
      await expect(bind(subPath), subPath).rejects.toMatchObject({
        code: expect.stringMatching(/Outside|Failed/) as string,
      });
    await bind("fine/deep");

    expect(existsSync(join(outside, "deep"))).toBe(false);
    expect(mountPaths()).toEqual([root, join(base, "part")]);
    await host.mounts.cleanUp(join(base, "part"));
    await plugin.tearDown(tearDownOf(spec));
  });
});

const pageSizes = existsSync("/sys/kernel/mm/hugepages/hugepages-1048576kB") ? ["2Mi", "1Gi"] : ["2Mi"];

describe.skipIf(!isRoot || !existsSync("/sys/kernel/mm/hugepages/hugepages-2048kB"))("huge pages", () => {
  for (const size of pageSizes)
    test(`an emptyDir in pages of ${size} is a hugetlbfs, found again after a crash before its mark, and gone at the end`, async () => {
      const plugin = createEmptyDirPlugin(deps);
      const spec = inline({ name: `huge-${size.toLowerCase()}`, emptyDir: { medium: `HugePages-${size}` } });
      const containers = [{ name: "c", resources: { requests: { [`hugepages-${size}`]: size } } }];
      const request = setUpOf(spec, { pod: pod({ containers }) });

      await plugin.setUp(request);
      rmSync(join(base, "root/pods/u1/plugins"), { recursive: true });
      await plugin.setUp(request);

      expect(mounts()).toHaveLength(1);
      expect(mounts()[0]).toMatch(/ - hugetlbfs nodev /);
      await plugin.tearDown(tearDownOf(spec));
      expect(mounts()).toEqual([]);
    });
});
