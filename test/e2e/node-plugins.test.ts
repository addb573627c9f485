import { execFileSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { silentLogger } from "../../src/base/log.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createLinuxHost } from "../../src/node/linux-host.ts";
import { createPaths } from "../../src/node/paths.ts";
import type { NodeObjects } from "../../src/node/objects.ts";
import { createBuiltInPlugins } from "../../src/node/plugins/built-in.ts";
import {
  inline,
  persistent,
  pod,
  setUpOf,
  signal,
  tearDownOf,
} from "../../src/node/plugins/plugins.testing.ts";
import type { VolumeSpec } from "../../src/volumes/spec.ts";

/** Plugins of the node on this machine: real files, tmpfs, binds and a loop device, in a directory of their own. */

const isRoot = process.getuid?.() === 0 && process.platform === "linux";
const base = realpathSync(mkdtempSync(join(tmpdir(), "node-plugins-")));
const clock = createSystemClock();
const host = createLinuxHost({ clock });
const data: Record<string, string> = { a: "1", b: "1" };
const objects = {
  configMap: async () => ({ metadata: {}, data: { ...data } }),
  secret: async () => ({ metadata: {}, data: { key: Buffer.from("hidden").toString("base64") } }),
  node: () => undefined,
} as unknown as NodeObjects;
const plugins = createBuiltInPlugins({
  host,
  objects,
  paths: createPaths(join(base, "root")),
  clock,
  random: createSeededRandom(1),
  log: silentLogger,
  events: { record: () => undefined },
  forgetTokens: () => undefined,
});
const loops: string[] = [];

function pluginOf(spec: VolumeSpec) {
  const plugin = plugins.find((each) => each.canSupport(spec));
  if (plugin === undefined) throw new Error(`no plugin for ${JSON.stringify(spec)}`);
  return plugin;
}

const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8);
const mountLines = () =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(base));

afterAll(() => {
  // Whatever a failed test left mounted, innermost first.
  for (const path of mountLines()
    .map((line) => line.split(" ")[4] ?? "")
    .reverse())
    execFileSync("umount", ["-l", path]);
  for (const loop of loops) execFileSync("losetup", ["-d", loop]);
  host.close();
  rmSync(base, { recursive: true, force: true });
});

describe.skipIf(!isRoot)("plugins on this machine", () => {
  test("an emptyDir in memory is a tmpfs of its size, and is gone afterwards", async () => {
    const spec = inline({ emptyDir: { medium: "Memory", sizeLimit: "1Mi" } });
    const plugin = pluginOf(spec);
    const path = plugin.mountPath(spec, "u1");

    await plugin.setUp(setUpOf(spec, { fsGroup: 4_242 }));
    await plugin.setUp(setUpOf(spec, { fsGroup: 4_242 }));

    expect(mountLines()).toHaveLength(1);
    expect(mountLines()[0]).toMatch(/ - tmpfs tmpfs .*size=1024k/);
    expect(() => writeFileSync(join(path, "big"), Buffer.alloc(2 << 20))).toThrow("ENOSPC");
    expect(statSync(path).gid).toBe(4_242);
    await plugin.tearDown(tearDownOf(spec));
    expect(mountLines()).toEqual([]);
    expect(lstatSync(path, { throwIfNoEntry: false })).toBeUndefined();
  });

  test("a full root directory: nothing new is mounted, what is there is let go, and its record goes", async () => {
    const root = join(base, "full");
    mkdirSync(root);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", root]);
    const paths = createPaths(root);
    const full = createBuiltInPlugins({
      ...{ host, objects, paths, clock, random: createSeededRandom(1), log: silentLogger },
      events: { record: () => undefined },
      forgetTokens: () => undefined,
    });
    const spec = inline({ name: "memory", emptyDir: { medium: "Memory" } });
    const plugin = full.find((each) => each.canSupport(spec))!;
    const record = join(paths.journal, "volumes", "one.json");
    await host.files.makeDirectories(join(paths.journal, "volumes"), 0o700);
    await host.files.writeDurable(record, "{}\n");
    await plugin.setUp(setUpOf(spec));
    for (let n = 0; n < 200; n++)
      try {
        writeFileSync(join(root, `filler-${n}`), Buffer.alloc(4_096));
      } catch {
        break;
      }

    await expect(host.files.writeDurable(record, `${"x".repeat(8_192)}\n`)).rejects.toMatchObject({
      code: "NoSpace",
    });
    expect(readFileSync(record, "utf8"), "a record that could not be replaced is whole").toBe("{}\n");
    await plugin.tearDown(tearDownOf(spec));
    await host.files.removeFile(record);

    expect(mountLines()).toHaveLength(1);
    expect(lstatSync(plugin.mountPath(spec, "u1"), { throwIfNoEntry: false })).toBeUndefined();
    expect(lstatSync(record, { throwIfNoEntry: false })).toBeUndefined();
    execFileSync("umount", [root]);
  });

  test("an emptyDir on disk keeps what the pod wrote until its end, whatever the umask", async () => {
    const spec = inline({ name: "disk", emptyDir: {} });
    const plugin = pluginOf(spec);
    const path = plugin.mountPath(spec, "u1");
    const umask = process.umask(0o077);
    try {
      await plugin.setUp(setUpOf(spec));
      writeFileSync(join(path, "mine"), "kept");
      await plugin.setUp(setUpOf(spec));
    } finally {
      process.umask(umask);
    }

    expect(modeOf(path)).toBe("777");
    expect(readFileSync(join(path, "mine"), "utf8")).toBe("kept");
    await plugin.tearDown(tearDownOf(spec));
    expect(lstatSync(path, { throwIfNoEntry: false })).toBeUndefined();
  });

  test("a configMap is switched as a whole and cleaned up; a secret lies in memory alone", async () => {
    const spec = inline({ name: "cm", configMap: { name: "c", defaultMode: 0o640 } });
    const plugin = pluginOf(spec);
    const path = plugin.mountPath(spec, "u1");
    await plugin.setUp(setUpOf(spec, { fsGroup: 4_242 }));
    const first = readlinkSync(join(path, "..data"));
    expect(modeOf(join(path, "a"))).toBe("640");
    expect(statSync(join(path, "a")).gid).toBe(4_242);
    await plugin.setUp(setUpOf(spec, { fsGroup: 4_242, isRemount: true }));
    expect(readlinkSync(join(path, "..data"))).toBe(first);

    data["a"] = "2";
    delete data["b"];
    await plugin.setUp(setUpOf(spec, { fsGroup: 4_242, isRemount: true }));
    expect(readFileSync(join(path, "a"), "utf8")).toBe("2");
    expect(execFileSync("ls", ["-A", path], { encoding: "utf8" }).split("\n").filter(Boolean)).toHaveLength(
      3,
    );
    await plugin.tearDown(tearDownOf(spec));
    expect(lstatSync(path, { throwIfNoEntry: false })).toBeUndefined();

    const secret = inline({ name: "s", secret: { secretName: "s", defaultMode: 0o400 } });
    await pluginOf(secret).setUp(setUpOf(secret));
    expect(mountLines().map((line) => line.split(" - ")[1]?.split(" ")[0])).toEqual(["tmpfs"]);
    expect(readFileSync(join(pluginOf(secret).mountPath(secret, "u1"), "key"), "utf8")).toBe("hidden");
    await pluginOf(secret).tearDown(tearDownOf(secret));
    expect(mountLines()).toEqual([]);
  });

  test("a hostPath is checked and made, never removed", async () => {
    const path = join(base, "host", "deep");
    const spec = inline({ hostPath: { path, type: "DirectoryOrCreate" } });
    await pluginOf(spec).setUp(setUpOf(spec));
    await pluginOf(spec).tearDown(tearDownOf(spec));
    expect(statSync(path).isDirectory()).toBe(true);

    const wrong = inline({ hostPath: { path, type: "Socket" } });
    await expect(pluginOf(wrong).setUp(setUpOf(wrong))).rejects.toThrow(
      "is not a socket file, it's a Directory",
    );
  });

  test("local volumes: a directory is bound read-only, a loop device is formatted, mounted, bound and found again", async () => {
    const directory = join(base, "local");
    mkdirSync(directory);
    writeFileSync(join(directory, "x"), "kept");
    const readOnly = persistent({ local: { path: directory } }, { readOnly: true, name: "dir" });
    const plugin = pluginOf(readOnly);
    await plugin.setUp(setUpOf(readOnly));
    expect(() => writeFileSync(join(plugin.mountPath(readOnly, "u1"), "y"), "")).toThrow("EROFS");
    await plugin.tearDown(tearDownOf(readOnly));
    expect(readFileSync(join(directory, "x"), "utf8")).toBe("kept");

    const image = join(base, "image");
    writeFileSync(image, "");
    truncateSync(image, 16 << 20);
    const loop = execFileSync("losetup", ["--find", "--show", image], { encoding: "utf8" }).trim();
    loops.push(loop);
    const spec = persistent({ local: { path: loop } }, { name: "disk" });
    const deviceMountPath = plugin.device?.mountPath(spec) ?? "";
    const device = {
      volume: "v" as never,
      spec,
      pod: pod(),
      devicePath: "",
      deviceMountPath,
      mayBeThere: false,
      signal,
    };
    await plugin.device?.mount(device);
    await plugin.setUp(setUpOf(spec, { deviceMountPath, fsGroup: 4_242 }));
    const path = plugin.mountPath(spec, "u1");
    writeFileSync(join(path, "x"), "on disk");

    expect(statSync(join(path, "x")).gid).toBe(4_242);
    const found = await plugin.reconstruct({ podUid: "u1", specName: "disk", mode: "Filesystem", path });
    expect(found?.spec.volume).toMatchObject({ spec: { local: { path: loop } } });
    expect(await plugin.findStaged?.()).toMatchObject([{ path: deviceMountPath }]);
    expect(await plugin.block?.mapPodDevice?.({ ...setUpOf(spec) })).toBe(loop);
    await plugin.tearDown(tearDownOf(spec));
    await plugin.device?.unmount(device);
    expect(mountLines()).toEqual([]);
  });
});
