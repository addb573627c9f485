import { describe, expect, test } from "vitest";
import { VolumeError } from "../errors.ts";
import type { NodePlugin, SetUpRequest } from "../plugin.ts";
import { createEmptyDirPlugin } from "./empty-dir.ts";
import { createGitRepoPlugin } from "./git-repo.ts";
import { createHostPathPlugin } from "./host-path.ts";
import { createImagePlugin } from "./image.ts";
import { createLocalPlugin } from "./local.ts";
import { createNfsPlugin } from "./nfs.ts";
import {
  claimed,
  createStage,
  inline,
  persistent,
  pod,
  POD_UID,
  ROOT,
  setUpOf,
  signal,
  tearDownOf,
} from "./plugins.testing.ts";
import { desiredSizeLimitBytes } from "./pod-resources.ts";

const EMPTY_DIR = `${ROOT}/pods/${POD_UID}/volumes/kubernetes.io~empty-dir/v`;
const MARK = `${ROOT}/pods/${POD_UID}/plugins/kubernetes.io~empty-dir/v/ready`;
const NFS = `${ROOT}/pods/${POD_UID}/volumes/kubernetes.io~nfs/v`;
const localTarget = (podUid: string) => `${ROOT}/pods/${podUid}/volumes/kubernetes.io~local-volume/pv1`;
const LOCAL_STAGING = `${ROOT}/plugins/kubernetes.io/local-volume/mounts/pv1`;

async function failureOf(plugin: NodePlugin, request: SetUpRequest): Promise<VolumeError> {
  const error: unknown = await plugin.setUp(request).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(VolumeError);
  return error as VolumeError;
}

const withLimits = (limits: Record<string, string>, requests: Record<string, string> = {}) => ({
  name: "c",
  resources: { limits, requests },
});

describe("emptyDir", () => {
  for (const [limits, sizeLimit, expected] of [
    [["1Gi", "1Gi"], "1Gi", 2 ** 30],
    [["1Gi", "1Gi"], "3Gi", 2 * 2 ** 30],
    [["1Gi", "1Gi"], undefined, 2 * 2 ** 30],
    [[], "3Gi", 3 * 2 ** 30],
    [[], undefined, 0],
  ] as const)
    test(`scenario 30: containers limited to [${limits.join()}] and sizeLimit ${sizeLimit ?? "none"} give ${expected} bytes`, () => {
      const containers = limits.map((limit) => withLimits({ "ephemeral-storage": limit }));
      const emptyDir = sizeLimit === undefined ? {} : { sizeLimit };

      expect(desiredSizeLimitBytes(pod({ containers }), inline({ emptyDir }))).toBe(expected);
    });

  test("memory and other volumes have no limit of disk space", () => {
    expect(desiredSizeLimitBytes(pod(), inline({ emptyDir: { medium: "Memory" } }))).toBeUndefined();
    expect(desiredSizeLimitBytes(pod(), inline({ secret: {} }))).toBeUndefined();
    expect(desiredSizeLimitBytes(pod(), inline({ configMap: {} }))).toBe(0);
  });

  test("on disk: everybody may write, what a pod wrote survives a second set-up, and goes with the pod", async () => {
    const { deps, host } = createStage();
    const plugin = createEmptyDirPlugin(deps);
    const spec = inline({ emptyDir: {} });

    const attributes = await plugin.setUp(setUpOf(spec, { fsGroup: 5 }));
    await host.files.writeFile(`${EMPTY_DIR}/mine`, Buffer.from("kept"), 0o600);
    await host.files.chmod(EMPTY_DIR, 0o700);
    await plugin.setUp(setUpOf(spec, { fsGroup: 5 }));

    expect(attributes).toEqual({ readOnly: false, managed: true, selinuxRelabel: true });
    expect(await host.files.read(`${EMPTY_DIR}/mine`)).toBe("kept");
    expect(await host.files.stat(EMPTY_DIR)).toMatchObject({ mode: 0o700, gid: 5 });
    await plugin.tearDown(tearDownOf(spec));
    await plugin.tearDown(tearDownOf(spec));
    expect(await host.files.stat(EMPTY_DIR)).toBeUndefined();
    expect(await host.files.stat(MARK)).toBeUndefined();
  });

  test("a mark whose directory is gone is not believed", async () => {
    const { deps, host } = createStage();
    const plugin = createEmptyDirPlugin(deps);
    await plugin.setUp(setUpOf(inline({ emptyDir: {} })));
    await host.files.removeTree(EMPTY_DIR);

    await plugin.setUp(setUpOf(inline({ emptyDir: {} })));

    expect((await host.files.stat(EMPTY_DIR))?.mode).toBe(0o777);
  });

  for (const [sizeLimit, podLimit, allocatable, size] of [
    ["1Gi", "10Gi", "64Gi", 2 ** 30],
    ["20Gi", "10Gi", "64Gi", 10 * 2 ** 30],
    [undefined, undefined, "64Gi", 64 * 2 ** 30],
    ["1Gi", undefined, "512Mi", 2 ** 29],
    ["0", undefined, "64Gi", 64 * 2 ** 30],
  ] as const)
    test(`scenario 124: memory limited to ${sizeLimit ?? "-"} in a pod of ${podLimit ?? "-"} on a node of ${allocatable} is size=${size}`, async () => {
      const { deps, host, world } = createStage();
      const plugin = createEmptyDirPlugin(deps);
      world.node = { metadata: {}, status: { allocatable: { memory: allocatable } } };
      const containers = [podLimit ? withLimits({ memory: podLimit }) : { name: "c" }];
      const spec = inline({ emptyDir: { medium: "Memory", ...(sizeLimit && { sizeLimit }) } });

      await plugin.setUp(setUpOf(spec, { pod: pod({ containers }) }));

      const mounted = (await host.mounts.table()).at(EMPTY_DIR);
      expect(mounted).toMatchObject({ type: "tmpfs", source: "tmpfs" });
      expect(mounted?.options).toEqual(expect.arrayContaining([`size=${size}`, "noswap"]));
      await plugin.tearDown(tearDownOf(spec));
      expect(host.log.slice(-2)).toEqual([`mounts.unmount ${EMPTY_DIR}`, `files.removeTree ${EMPTY_DIR}`]);
      expect(await host.files.stat(EMPTY_DIR)).toBeUndefined();
    });

  test("what is mounted there and is no memory is never unmounted by a tear-down", async () => {
    const { deps, host, machine } = createStage();
    await host.files.makeDirectories(EMPTY_DIR, 0o777);
    machine.addDevice("/dev/sdb", 1 << 20);
    await host.mounts.formatAndMount({ source: "/dev/sdb", target: EMPTY_DIR, type: "ext4", options: [] });

    await expect(createEmptyDirPlugin(deps).tearDown(tearDownOf(inline({ emptyDir: {} })))).rejects.toThrow(
      "no emptyDir",
    );

    expect(await host.mounts.isMountPoint(EMPTY_DIR)).toBe(true);
  });

  for (const [medium, requests, expected] of [
    [
      "HugePages",
      { "hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi" },
      "medium: HugePages can't be used if container requests multiple huge page sizes",
    ],
    ["HugePages", { "hugepages-1Gi": "1Gi" }, "pagesize=1Gi"],
    [
      "HugePages",
      {},
      "medium HugePages: hugePages storage requested, but there is no resource request for huge pages",
    ],
    ["HugePages-2Mi", { "hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi" }, "pagesize=2Mi"],
    [
      "HugePages-2Mi",
      { "hugepages-1Gi": "1Gi" },
      "medium HugePages-2Mi: hugePages storage requested, but there is no resource request for huge pages",
    ],
    ["Tape", {}, 'unknown storage medium "Tape"'],
  ] as const)
    test(`scenario 125: ${medium} with requests of ${Object.keys(requests).join(" and ") || "nothing"}: ${expected.slice(0, 40)}`, async () => {
      const { deps, host } = createStage();
      const plugin = createEmptyDirPlugin(deps);
      const containers = [withLimits({}, requests)];
      const request = setUpOf(inline({ emptyDir: { medium } }), { pod: pod({ containers }) });

      if (!expected.startsWith("pagesize")) expect((await failureOf(plugin, request)).message).toBe(expected);
      else {
        await plugin.setUp(request);
        expect((await host.mounts.table()).at(EMPTY_DIR)?.options).toContain(expected);
      }
    });

  for (const [shown, wanted, isSame] of [
    ["2M", "2Mi", true],
    // As Linux shows what was mounted with `pagesize=1Gi`.
    ["1024M", "1Gi", true],
    ["2M", "1Gi", false],
  ] as const)
    test(`huge pages mounted before a crash as pagesize=${shown} are ${isSame ? "kept" : "refused"} where the pod asks for ${wanted}`, async () => {
      const { deps, host } = createStage();
      await host.files.makeDirectories(EMPTY_DIR, 0o777);
      const options = [`pagesize=${shown}`];
      await host.mounts.mount({ source: "nodev", target: EMPTY_DIR, type: "hugetlbfs", options });
      const containers = [withLimits({}, { [`hugepages-${wanted}`]: wanted })];

      const done = createEmptyDirPlugin(deps).setUp(
        setUpOf(inline({ emptyDir: { medium: "HugePages" } }), { pod: pod({ containers }) }),
      );

      if (isSame) await done;
      else await expect(done).rejects.toThrow(`it is mounted with pagesize=${shown}`);
      expect((await host.mounts.table()).below(EMPTY_DIR)).toHaveLength(1);
    });

  test("one in memory is resized in place; others and those not mounted are refused", async () => {
    const { deps, host } = createStage();
    const plugin = createEmptyDirPlugin(deps);
    const resize = { podUid: POD_UID, name: "v", medium: "Memory", sizeBytes: 1 << 20 };

    await expect(plugin.resize(resize)).rejects.toThrow("volume v is not yet mounted; deferring resize");
    await expect(plugin.resize({ ...resize, medium: "" })).rejects.toThrow("only memory-backed");
    await expect(plugin.resize({ ...resize, sizeBytes: 0 })).rejects.toThrow(
      "addition or removal of size limit",
    );
    await plugin.setUp(setUpOf(inline({ emptyDir: { medium: "Memory" } })));
    await plugin.resize(resize);

    expect((await host.mounts.table()).at(EMPTY_DIR)?.options).toContain("size=1048576");
  });
});

describe("hostPath", () => {
  const given = async () => {
    const { deps, host, machine } = createStage();
    await host.files.makeDirectories("/d", 0o755);
    await host.files.makeFile("/f", 0o644);
    await host.files.symlink("/d", "/link");
    machine.addDevice("/dev/sdb", 1);
    return { host, plugin: createHostPathPlugin(deps) };
  };

  for (const [path, type, problem] of [
    ["/f", "Directory", "hostPath type check failed: /f is not a directory, it's a File"],
    ["/d", "File", "hostPath type check failed: /d is not a file, it's a Directory"],
    ["/d", "Socket", "hostPath type check failed: /d is not a socket file, it's a Directory"],
    ["/f", "CharDevice", "hostPath type check failed: /f is not a character device, it's a File"],
    ["/dev/sdb", "BlockDevice", ""],
    ["/d", "BlockDevice", "hostPath type check failed: /d is not a block device, it's a Directory"],
    ["/link", "Directory", ""],
    ["/none", "", ""],
    [
      "/none",
      "Directory",
      "hostPath type check failed, /none is not a directory, unable to determine its type: it does not exist",
    ],
    ["/d", "Nonsense", "Nonsense is an invalid volume type"],
    ["/d", "constructor", "constructor is an invalid volume type"],
    ["/a/../b", "", "invalid HostPath `/a/../b`: must be a path without '..'"],
    ["/none/deep", "FileOrCreate", "ENOENT"],
  ] as const)
    test(`scenario 126: ${path} as ${type || "anything"}: ${problem || "fine"}`, async () => {
      const { plugin } = await given();
      const request = setUpOf(inline({ hostPath: { path, type } }));

      if (problem === "")
        expect(await plugin.setUp(request)).toMatchObject({ readOnly: false, managed: false });
      else await expect(plugin.setUp(request)).rejects.toThrow(problem);
    });

  test("what is missing is made where the type says so, and stays after the pod", async () => {
    const { host, plugin } = await given();
    const directory = inline({ hostPath: { path: "/new/deep", type: "DirectoryOrCreate" } });

    await plugin.setUp(setUpOf(directory));
    await plugin.setUp(setUpOf(inline({ hostPath: { path: "/new/file", type: "FileOrCreate" } })));
    await plugin.tearDown(tearDownOf(directory));

    expect(await host.files.stat("/new/deep")).toMatchObject({ kind: "directory", mode: 0o755 });
    expect(await host.files.stat("/new/file")).toMatchObject({ kind: "file", mode: 0o644 });
    expect(plugin.mountPath(directory, POD_UID)).toBe("/new/deep");
  });

  test("scenario 76: it takes no mount options", async () => {
    const { plugin } = await given();

    expect(plugin.traits(persistent({ hostPath: { path: "/d" }, mountOptions: ["ro"] })).mountOptions).toBe(
      false,
    );
  });
});

describe("local", () => {
  const given = async () => {
    const stage = createStage();
    await stage.host.files.makeDirectories("/data", 0o755);
    stage.machine.addDevice("/dev/sdb", 1 << 30);
    return { ...stage, plugin: createLocalPlugin(stage.deps) };
  };
  const directory = persistent({ local: { path: "/data" } });
  const disk = persistent({ local: { path: "/dev/sdb" } });
  const deviceRequest = (spec: typeof disk) => ({
    volume: "kubernetes.io/local-volume/pv1" as never,
    spec,
    pod: pod(),
    devicePath: "",
    deviceMountPath: LOCAL_STAGING,
    mayBeThere: false,
    signal,
  });

  test("a directory is bound for each pod; nothing is mounted for the node, and its files stay", async () => {
    const { plugin, host } = await given();
    await host.files.writeFile("/data/x", Buffer.from("kept"), 0o600);

    await plugin.device?.mount(deviceRequest(directory));
    await plugin.setUp(setUpOf(directory, { fsGroup: 1_000 }));
    expect(await host.files.read(`${localTarget(POD_UID)}/x`)).toBe("kept");
    expect((await host.files.stat("/data/x"))?.gid).toBe(1_000);

    await plugin.tearDown(tearDownOf(directory));
    await plugin.device?.unmount(deviceRequest(directory));
    expect((await host.mounts.table()).points).toHaveLength(1);
    expect(await host.files.read("/data/x")).toBe("kept");
    expect(await host.files.stat(localTarget(POD_UID))).toBeUndefined();
  });

  test("a disk is formatted and mounted once, bound for each pod, and let go", async () => {
    const { plugin, host } = await given();

    await plugin.device?.mount(deviceRequest(disk));
    await plugin.device?.mount(deviceRequest(disk));
    await plugin.setUp(setUpOf(disk));
    await plugin.setUp(setUpOf(disk, { podUid: "u2" }));

    const points = (await host.mounts.table()).points.filter(({ source }) => source === "/dev/sdb");
    expect(points.map(({ path }) => path)).toEqual([LOCAL_STAGING, localTarget(POD_UID), localTarget("u2")]);
    expect(await plugin.findStaged?.()).toMatchObject([
      { volume: "kubernetes.io/local-volume/pv1", path: LOCAL_STAGING, mode: "Filesystem" },
    ]);
    const found = {
      podUid: POD_UID,
      specName: "pv1",
      mode: "Filesystem",
      path: localTarget(POD_UID),
    } as const;
    expect(await plugin.reconstruct(found)).toMatchObject({
      spec: { volume: { spec: { local: { path: "/dev/sdb" } } } },
    });
    await plugin.tearDown(tearDownOf(disk));
    await plugin.tearDown(tearDownOf(disk, "u2"));
    await plugin.device?.unmount(deviceRequest(disk));
    expect((await host.mounts.table()).points).toHaveLength(1);
  });

  test("scenario 93: a bound directory found after a restart is not guessed at, and an ordinary mount adopts it", async () => {
    const { plugin, host } = await given();
    await plugin.setUp(setUpOf(directory));
    const before = host.log.length;

    const found = {
      podUid: POD_UID,
      specName: "pv1",
      mode: "Filesystem",
      path: localTarget(POD_UID),
    } as const;
    expect(await plugin.reconstruct(found)).toBeUndefined();
    await plugin.setUp(setUpOf(directory));

    expect(host.log.slice(before)).toEqual([]);
    expect(await host.mounts.isMountPoint(localTarget(POD_UID))).toBe(true);
  });

  test("scenario 127: a second pod with another group is warned, gets the volume, and changes no owner", async () => {
    const { plugin, host, events } = await given();
    await plugin.setUp(setUpOf(directory, { fsGroup: 2_000 }));

    await plugin.setUp(setUpOf(directory, { podUid: "u2", fsGroup: 1_000, pod: pod({}, { uid: "u2" }) }));

    expect(events).toMatchObject([
      {
        type: "Warning",
        reason: "AlreadyMountedVolume",
        message:
          "The requested fsGroup is 1000, but the volume pv1 has GID 2000. The volume may not be shareable.",
      },
    ]);
    expect(await host.mounts.isMountPoint(localTarget("u2"))).toBe(true);
    expect((await host.files.stat("/data"))?.gid).toBe(2_000);
  });

  test("a long walk is told to the pod after 30 s, then every minute", async () => {
    const { plugin, host, events, scheduler } = await given();
    host.delay("files.applyGroup", { ms: 100_000 });

    const done = plugin.setUp(setUpOf(directory, { fsGroup: 2_000 }));
    await scheduler.runFor(200_000);
    await done;

    expect(events.map(({ reason }) => reason)).toEqual([
      "VolumePermissionChangeInProgress",
      "VolumePermissionChangeInProgress",
    ]);
    expect(events[0]?.message).toContain("Setting volume ownership for u1/volumes/");
    expect(events[1]?.message).toMatch(/processed \d+ files\.$/);
  });

  for (const [path, problem] of [
    ["", "path is empty"],
    ["/data/../etc", "must not contain '..'"],
    ["/file", "only directory and block device are supported"],
    ["/missing", "does not exist"],
  ] as const)
    test(`the path ${JSON.stringify(path)} is refused: ${problem}`, async () => {
      const { plugin, host } = await given();
      await host.files.makeFile("/file", 0o600);

      await expect(plugin.setUp(setUpOf(persistent({ local: { path } })))).rejects.toThrow(problem);
    });

  test("a bind that fails leaves nothing behind; one that may still be going on is uncertain", async () => {
    const { plugin, host } = await given();
    host.fail("mounts.bind", { code: "Failed" });
    expect((await failureOf(plugin, setUpOf(directory))).outcome).toBe("final");
    expect(await host.files.stat(localTarget(POD_UID))).toBeUndefined();

    host.fail("mounts.bind", { code: "TimedOut" });
    expect((await failureOf(plugin, setUpOf(directory))).outcome).toBe("uncertain");
    expect(await host.files.stat(localTarget(POD_UID))).toBeDefined();
  });

  test("a disk as a raw device is the device itself; a directory is none", async () => {
    const { plugin } = await given();
    const block = { ...setUpOf(disk), mayBeThere: false };

    expect(await plugin.block?.mapPodDevice?.(block)).toBe("/dev/sdb");
    await expect(plugin.block?.mapPodDevice?.({ ...block, spec: directory })).rejects.toThrow(
      "no block device",
    );
    expect(plugin.block?.globalMapPath(disk)).toBe(
      `${ROOT}/plugins/kubernetes.io~local-volume/volumeDevices/pv1`,
    );
  });

  test("a grown disk grows its filesystem; a directory has nothing to grow", async () => {
    const { plugin, host, machine } = await given();
    await plugin.device?.mount(deviceRequest(disk));
    machine.growDevice("/dev/sdb", 2 << 30);
    const expand = {
      volume: "v" as never,
      volumePath: "",
      stagingPath: LOCAL_STAGING,
      devicePath: "",
      newSizeBytes: 2 << 30,
      oldSizeBytes: 1,
      signal,
    };

    await plugin.expand?.({ ...expand, spec: disk });
    await plugin.expand?.({ ...expand, spec: directory });

    expect((await host.files.usage(LOCAL_STAGING)).capacityBytes).toBe(2 << 30);
  });
});

describe("nfs", () => {
  test("scenario 128: an IPv6 server stands in brackets", async () => {
    const { deps, host } = createStage();
    const plugin = createNfsPlugin(deps);
    const nfs = { server: "::1", path: "/export", readOnly: true };

    await plugin.setUp(setUpOf(inline({ nfs })));
    await plugin.setUp(setUpOf(inline({ nfs })));

    const mounted = (await host.mounts.table()).points.filter(({ path }) => path === NFS);
    expect(mounted).toMatchObject([{ source: "[::1]:/export", type: "nfs" }]);
    expect(mounted[0]?.options).toContain("ro");
    const found = await plugin.reconstruct({ podUid: POD_UID, specName: "v", mode: "Filesystem", path: NFS });
    expect(found).toMatchObject({ spec: { volume: { nfs: { server: "::1", path: "/export" } } } });
  });

  test("scenario 128: a server that hangs is given 60 s, then the mount is forced off", async () => {
    const { deps, host, machine, scheduler, clock } = createStage();
    const plugin = createNfsPlugin(deps);
    const spec = inline({ nfs: { server: "s", path: "/e" } });
    await plugin.setUp(setUpOf(spec));
    machine.hang(NFS);
    const startMs = clock.now();

    let tookMs = -1;
    void plugin.tearDown(tearDownOf(spec)).then(() => (tookMs = clock.now() - startMs));
    await scheduler.runFor(61_000);

    expect(tookMs).toBe(60_000);
    expect(await host.mounts.isMountPoint(NFS)).toBe(false);
  });

  test("mount options of the volume are sorted, each once", async () => {
    const { deps, host } = createStage();
    const spec = persistent({ nfs: { server: "s", path: "/e" }, mountOptions: ["soft", "nolock", "soft"] });

    await createNfsPlugin(deps).setUp(setUpOf(spec));

    const [mount] = (await host.mounts.table()).points.filter(({ type }) => type === "nfs");
    expect(mount?.options.filter((option) => ["soft", "nolock"].includes(option))).toEqual([
      "nolock",
      "soft",
    ]);
  });
});

describe("image and gitRepo", () => {
  test("scenario 132: an image counts as mounted without any directory", async () => {
    const { host } = createStage();
    const plugin = createImagePlugin();
    const spec = inline({ image: { reference: "example/x:1" } });

    expect(claimed(plugin, spec)).toBe("example/x:1");
    expect(await plugin.setUp(setUpOf(spec))).toMatchObject({ readOnly: true, managed: false });
    expect(plugin.mountPath(spec, POD_UID)).toBe("");
    expect(host.log).toEqual([]);
  });

  test("a git repository is refused with what to do instead", async () => {
    const { deps } = createStage();

    const failure = await failureOf(
      createGitRepoPlugin(deps),
      setUpOf(inline({ gitRepo: { repository: "r" } })),
    );

    expect(failure).toMatchObject({ outcome: "final", kind: "not-supported" });
    expect(failure.message).toContain("init container");
  });
});
