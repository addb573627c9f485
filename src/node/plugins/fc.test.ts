import { expect, test } from "vitest";
import { createFcPlugin } from "./fc.ts";
import {
  createStage,
  persistent,
  pod,
  POD_UID,
  ROOT,
  setUpOf,
  signal,
  tearDownOf,
} from "./plugins.testing.ts";

const WWN = "500a0981891b8dc5";
const WWID = "3600508b4_0001";
const DIRECTORY = `${ROOT}/plugins/kubernetes.io/fc/${WWN}-lun-0`;
const spec = persistent({ fc: { targetWWNs: [WWN], lun: 0 } });

async function given() {
  const stage = createStage();
  const { machine } = stage;
  const { files } = machine;
  const calls: string[] = [];
  for (const path of ["/dev/disk/by-path", "/dev/disk/by-id", "/sys/block", "/sys/class/scsi_host/host3"])
    await files.makeDirectories(path, 0o755);
  const appear = async () => {
    machine.addDevice("/dev/sdq", 1 << 30, { wwid: WWID });
    await files.symlink("/dev/sdq", `/dev/disk/by-path/pci-0000:41:00.0-fc-0x${WWN}-lun-0`);
    await files.symlink("/dev/sdq", `/dev/disk/by-id/scsi-${WWID}`);
  };
  const world = { appearsOnScan: false };
  machine.addProgram("tee", async ([path = ""], stdin) => {
    calls.push(`tee ${path} ${stdin}`);
    if (path.endsWith("scan") && world.appearsOnScan) await appear();
    return { exitCode: 0, stdout: "", stderr: "" };
  });
  for (const name of ["multipath", "blockdev"])
    machine.addProgram(name, (args) => {
      calls.push(`${name} ${args.join(" ")}`);
      return { exitCode: 0, stdout: "", stderr: "" };
    });
  const plugin = createFcPlugin({ ...stage.deps, host: machine });
  const attach = (of = spec) =>
    plugin.attach?.waitForAttach({ ...setUpOf(of), timeoutMs: 1 }) ?? Promise.resolve("");
  const device = {
    volume: "v" as never,
    spec,
    pod: pod(),
    deviceMountPath: DIRECTORY,
    mayBeThere: false,
    signal,
  };
  return { ...stage, plugin, calls, appear, attach, device, files, scan: world };
}

test("a disk that is there is found by its target or by its own name, without a scan", async () => {
  const { attach, appear, calls } = await given();
  await appear();

  expect(await attach()).toBe(`/dev/disk/by-path/pci-0000:41:00.0-fc-0x${WWN}-lun-0`);
  expect(await attach(persistent({ fc: { wwids: ["3600508b4 0001"] } }))).toBe(
    `/dev/disk/by-id/scsi-${WWID}`,
  );
  expect(calls).toEqual([]);
});

test("a disk that is not there yet is found after one scan of all hosts; otherwise it is said", async () => {
  const { attach, scan, calls } = await given();

  await expect(attach()).rejects.toThrow("no fc disk found");
  expect(calls).toEqual(["tee /sys/class/scsi_host/host3/scan - - -"]);

  scan.appearsOnScan = true;
  expect(await attach()).toContain("-lun-0");
});

test("mounted, bound, reconstructed after a restart, and let go: buffers first, then out of the kernel", async () => {
  const { attach, appear, plugin, device, calls, files, host } = await given();
  await appear();
  const devicePath = await attach();
  await plugin.device?.mount({ ...device, devicePath });
  await plugin.setUp(setUpOf(spec, { deviceMountPath: DIRECTORY }));
  const target = plugin.mountPath(spec, POD_UID);

  const found = await plugin.reconstruct({
    podUid: POD_UID,
    specName: "pv1",
    mode: "Filesystem",
    path: target,
  });
  expect(found && plugin.volumeName(found.spec)).toBe(`[${WWN}]:0`);
  expect(await plugin.findStaged?.()).toMatchObject([
    { volume: `kubernetes.io/fc/[${WWN}]:0`, path: DIRECTORY },
  ]);

  await plugin.tearDown(tearDownOf(spec));
  await plugin.device?.unmount({ ...device, devicePath });
  expect(calls).toEqual(["blockdev --flushbufs /dev/sdq", "tee /sys/block/sdq/device/delete 1"]);
  expect(await files.stat(DIRECTORY)).toBeUndefined();
  expect((await host.mounts.table()).points).toHaveLength(1);
});

test("a joined device is preferred and is flushed before its ways are taken out", async () => {
  const { attach, appear, plugin, device, calls, files, machine } = await given();
  await appear();
  machine.addDevice("/dev/dm-4", 1 << 30, { wwid: WWID });
  await files.makeDirectories("/sys/block/dm-4/slaves/sdq", 0o755);

  const devicePath = await attach();
  expect(devicePath).toBe("/dev/dm-4");
  await plugin.device?.mount({ ...device, devicePath });
  await plugin.device?.unmount({ ...device, devicePath });

  expect(calls).toEqual([
    `multipath -f ${WWID}`,
    "blockdev --flushbufs /dev/sdq",
    "tee /sys/block/sdq/device/delete 1",
  ]);
});

for (const fc of [{}, { targetWWNs: ["../../etc"], lun: 0 }, { targetWWNs: [WWN] }, { wwids: ["a/b"] }])
  test(`${JSON.stringify(fc)} names no disk and is refused`, async () => {
    const { attach } = await given();

    await expect(async () => attach(persistent({ fc }))).rejects.toThrow("no fc disk information found");
  });
