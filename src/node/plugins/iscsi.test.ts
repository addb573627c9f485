import { describe, expect, test } from "vitest";
import type { VolumeSpec } from "../../volumes/spec.ts";
import { createIscsiPlugin } from "./iscsi.ts";
import {
  iscsiDirectory,
  iscsiIdentity,
  iscsiVolumeNames,
  parseIscsiDirectory,
  withPort,
} from "./iscsi-identity.ts";
import {
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

const IQN = "iqn.2026-01.org.example:disk";
const WWID = "360000000000000007";
const DIRECTORY = `${ROOT}/plugins/kubernetes.io/iscsi/iface-default/10.0.0.1:3260-${IQN}-lun-7`;
const TARGET = `${ROOT}/pods/${POD_UID}/volumes/kubernetes.io~iscsi/pv1`;
const volume = (more: object = {}, name = "pv1") =>
  persistent({ iscsi: { targetPortal: "10.0.0.1", iqn: IQN, lun: 7, ...more } }, { name });

/** A machine with a scripted iscsiadm: a log-in makes a session, a scan of its host makes the disk and its link. */
async function given() {
  const stage = createStage();
  const { machine } = stage;
  const { files } = machine;
  const calls: string[] = [];
  const answers = { login: 0, links: true };
  for (const path of ["/dev/disk/by-path", "/sys/block", "/sys/class/iscsi_host", "/sys/class/scsi_host"])
    await files.makeDirectories(path, 0o755);
  const answer = (exitCode: number, stdout = "", stderr = "") => ({ exitCode, stdout, stderr });
  const after = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1] ?? "";

  async function session(portal: string): Promise<void> {
    const [address = "", port = ""] = portal.split(/:(?=\d+$)/);
    const number = portal.endsWith("1:3260") ? 1 : 2;
    const device = `/sys/class/iscsi_host/host${number}/device/session${number}`;
    const connection = `${device}/connection${number}:0/iscsi_connection/connection${number}:0`;
    for (const path of [connection, `${device}/iscsi_session/session${number}`])
      await files.makeDirectories(path, 0o755);
    await files.writeFile(
      `${device}/iscsi_session/session${number}/targetname`,
      Buffer.from(`${IQN}\n`),
      0o444,
    );
    await files.writeFile(`${connection}/persistent_address`, Buffer.from(`${address}\n`), 0o444);
    await files.writeFile(`${connection}/persistent_port`, Buffer.from(`${port}\n`), 0o444);
  }
  machine.addProgram("iscsiadm", async (args) => {
    calls.push(args.join(" "));
    if (args.includes("show"))
      return answer(0, "iface.transport_name = tcp\niface.initiatorname = <empty>\niface.mtu = 9000\n");
    if (args.includes("--login")) {
      if (answers.login !== 0)
        return answer(answers.login, "", `initiator failed authorization\nwith ${after(args, "-v")}`);
      await session(after(args, "-p"));
    }
    if (args.includes("--logout"))
      await files.removeTree(`/sys/class/iscsi_host/host${after(args, "-p").endsWith("1:3260") ? 1 : 2}`);
    return answer(0);
  });
  machine.addProgram("tee", async ([path = ""], stdin) => {
    calls.push(`tee ${path} ${stdin}`);
    const number = /host(\d)\/scan/.exec(path)?.[1];
    if (number === undefined || !answers.links) return answer(0);
    const lun = stdin.split(" ")[2] ?? "";
    machine.addDevice(`/dev/sd${number}`, 1 << 30, { wwid: WWID });
    await files
      .symlink(`/dev/sd${number}`, `/dev/disk/by-path/ip-10.0.0.${number}:3260-iscsi-${IQN}-lun-${lun}`)
      .catch(() => undefined);
    return answer(0);
  });
  for (const name of ["multipath", "blockdev"])
    machine.addProgram(name, (args) => {
      calls.push(`${name} ${args.join(" ")}`);
      return answer(0);
    });
  const plugin = createIscsiPlugin({ ...stage.deps, host: machine });
  const attach = (spec: VolumeSpec = volume()) =>
    plugin.attach?.waitForAttach({ ...setUpOf(spec), timeoutMs: 1 }) ?? Promise.reject(new Error("none"));
  const mountDevice = (spec = volume(), devicePath = "") => ({
    volume: "v" as never,
    spec,
    pod: pod(),
    devicePath,
    deviceMountPath: plugin.device?.mountPath(spec) ?? "",
    mayBeThere: false,
    signal,
  });
  return { ...stage, plugin, calls, answers, attach, mountDevice, files };
}

describe("iscsi identity", () => {
  for (const [portal, expected] of [
    ["10.0.0.1", "10.0.0.1:3260"],
    ["10.0.0.1:3261", "10.0.0.1:3261"],
    ["san-a.example", "san-a.example:3260"],
    ["[fe80::1]", "[fe80::1]:3260"],
    ["[fe80::1]:3261", "[fe80::1]:3261"],
    ["fe80::1", "[fe80::1]:3260"],
  ] as const)
    test(`the portal ${portal} is ${expected}`, () => {
      expect(withPort(portal)).toBe(expected);
    });

  for (const targetPortal of ["10.0.0.1", "10.0.0.1:3260", "my-san-host", "[fe80::1]:3260", "fe80::1"])
    test(`FIX 27: ${targetPortal} comes back from its directory as one of its own names`, () => {
      const identity = iscsiIdentity(volume({ targetPortal, lun: 3 }));

      const back = parseIscsiDirectory(iscsiDirectory(identity));

      expect(back).toMatchObject({ iqn: IQN, lun: 3, portals: identity.portals, iface: "default" });
      expect(back && iscsiVolumeNames(back)).toContain(`${targetPortal}:${IQN}:3`);
    });

  for (const more of [
    { iqn: "iqn.x/../../etc" },
    { targetPortal: "../../etc" },
    { targetPortal: "-p" },
    { iscsiInterface: "a/b" },
    { lun: -1 },
  ])
    test(`${JSON.stringify(more)} is refused: it would be a directory or an argument`, () => {
      expect(() => iscsiIdentity(volume(more))).toThrow("is no such name");
    });
});

describe("iscsi", () => {
  test("logs in, scans one LUN, mounts, binds, and after the last volume logs out and forgets", async () => {
    const { plugin, calls, attach, mountDevice, host, files } = await given();

    const devicePath = await attach();
    await plugin.device?.mount(mountDevice(volume(), devicePath));
    await plugin.setUp(setUpOf(volume(), { deviceMountPath: DIRECTORY, fsGroup: 4 }));

    expect(devicePath).toBe(`/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-${IQN}-lun-7`);
    expect(plugin.device?.mountPath(volume())).toBe(DIRECTORY);
    expect(calls).toContain("tee /sys/class/scsi_host/host1/scan 0 0 7");
    expect((await host.mounts.table()).at(TARGET)?.type).toBe("ext4");

    await plugin.tearDown(tearDownOf(volume()));
    calls.length = 0;
    await plugin.device?.unmount(mountDevice(volume(), devicePath));
    expect(calls).toEqual([
      "blockdev --flushbufs /dev/sd1",
      "tee /sys/block/sd1/device/delete 1",
      `-m node -p 10.0.0.1:3260 -T ${IQN} -I default --logout`,
      `-m node -p 10.0.0.1:3260 -T ${IQN} -I default -o delete`,
    ]);
    expect(await files.stat(DIRECTORY)).toBeUndefined();
    expect(await files.list(`${ROOT}/mooring/iscsi`)).toEqual([]);
  });

  test("a record whose write a crash cut short leaves nothing behind once the volume is let go", async () => {
    const { plugin, attach, mountDevice, files } = await given();
    const devicePath = await attach();
    await plugin.device?.mount(mountDevice(volume(), devicePath));
    const records = `${ROOT}/mooring/iscsi`;
    const [record] = (await files.list(records)) ?? [];
    await files.writeFile(`${records}/${record?.name ?? ""}.draft`, Buffer.from("{"), 0o600);
    await files.writeFile(`${DIRECTORY}/iscsi.json.draft`, Buffer.from("{"), 0o600);

    await plugin.device?.unmount({ ...mountDevice(), devicePath });

    expect(await files.list(records)).toEqual([]);
    expect(await files.stat(DIRECTORY)).toBeUndefined();
  });

  test("a session that is there is used, and one that another volume uses stays", async () => {
    const { plugin, calls, attach, mountDevice } = await given();
    const other = volume({ lun: 8 }, "pv2");
    const devicePath = await attach();
    await attach(other);
    expect(calls.filter((call) => call.includes("--login"))).toHaveLength(1);

    await plugin.device?.unmount(mountDevice(volume(), devicePath));
    expect(calls.filter((call) => call.includes("--logout"))).toHaveLength(0);

    await plugin.device?.unmount(mountDevice(other));
    expect(calls.filter((call) => call.includes("--logout"))).toHaveLength(1);
  });

  test("several portals: both ways are opened, and the joined device is used", async () => {
    const { attach, files, machine, scheduler } = await given();
    machine.addDevice("/dev/dm-0", 1 << 30, { wwid: WWID });
    for (const way of ["sd1", "sd2"]) await files.makeDirectories(`/sys/block/dm-0/slaves/${way}`, 0o755);

    const attached = attach(volume({ portals: ["10.0.0.2"] }));
    await scheduler.runFor(60_000);

    expect(await attached).toBe("/dev/dm-0");
  });

  test("a portal that does not answer is done without when another does; none at all is a failure after 30 s", async () => {
    const { attach, answers, scheduler, clock } = await given();
    answers.links = false;

    let failed: unknown;
    void attach().catch((error: unknown) => (failed = error));
    await scheduler.runUntilTrue(() => failed !== undefined, { withinMs: 100_000 });

    expect(String(failed)).toContain("failed to get any path for iscsi disk");
    expect(clock.now()).toBe(30_000);
  });

  test("CHAP: keys of the secret go to discovery and session, and no error repeats them", async () => {
    const { attach, secrets, calls, answers } = await given();
    const b64 = (text: string) => Buffer.from(text).toString("base64");
    secrets.set("n/s", {
      data: {
        "discovery.sendtargets.auth.username": b64("du"),
        "node.session.auth.username": b64("nu"),
        "node.session.auth.password": b64("hunter22"),
      },
    });
    answers.login = 24;

    const failed = attach(
      volume({ chapAuthDiscovery: true, chapAuthSession: true, secretRef: { name: "s", namespace: "n" } }),
    );

    await expect(failed).rejects.toThrow(
      "log in at 10.0.0.1:3260: exit code 24: initiator failed authorization",
    );
    await expect(failed).rejects.not.toThrow("hunter22");
    expect(calls.some((call) => call.endsWith("-n discovery.sendtargets.auth.username -v du"))).toBe(true);
    expect(calls.some((call) => call.endsWith("-n node.session.auth.password -v hunter22"))).toBe(true);
  });

  test("an initiator of its own gets an interface of its own, which goes with it", async () => {
    const { attach, plugin, calls, mountDevice } = await given();
    const spec = volume({ initiatorName: "iqn.2026-01.org.example:me" });

    await attach(spec);
    await plugin.device?.unmount(mountDevice(spec));

    expect(calls).toContain("-m iface -I 10.0.0.1:3260:pv1 -o new");
    expect(calls).toContain("-m iface -I 10.0.0.1:3260:pv1 -o update -n iface.mtu -v 9000");
    expect(calls).toContain(
      "-m iface -I 10.0.0.1:3260:pv1 -o update -n iface.initiatorname -v iqn.2026-01.org.example:me",
    );
    expect(calls.at(-1)).toBe("-m iface -I 10.0.0.1:3260:pv1 -o delete");
  });

  for (const [written, record] of [
    ["10.0.0.1", "kept"],
    ["10.0.0.1", "lost"],
    ["10.0.0.1:3260", "lost"],
  ] as const)
    test(`FIX 27: a restart finds ${written} again under its own name with its record ${record}`, async () => {
      const { attach, plugin, mountDevice, files, world } = await given();
      const spec = volume({ targetPortal: written });
      await plugin.device?.mount(mountDevice(spec, await attach(spec)));
      await plugin.setUp(setUpOf(spec, { deviceMountPath: DIRECTORY }));
      if (record === "lost") {
        await files.removeTree(`${ROOT}/mooring`);
        world.node = { metadata: {}, status: { volumesInUse: [`kubernetes.io/iscsi/${written}:${IQN}:7`] } };
      }

      const found = await plugin.reconstruct({
        podUid: POD_UID,
        specName: "pv1",
        mode: "Filesystem",
        path: TARGET,
      });

      expect(found && plugin.volumeName(found.spec)).toBe(`${written}:${IQN}:7`);
      expect(found && plugin.device?.mountPath(found.spec)).toBe(DIRECTORY);
      expect((await plugin.findStaged?.())?.map((each) => each.volume)).toEqual([
        `kubernetes.io/iscsi/${written}:${IQN}:7`,
      ]);
    });

  test("an inline volume without its secret waits for it in the pod's namespace", async () => {
    const { attach } = await given();
    const spec = inline({
      iscsi: { targetPortal: "10.0.0.1", iqn: IQN, lun: 0, chapAuthSession: true, secretRef: { name: "s" } },
    });

    await expect(attach(spec)).rejects.toMatchObject({
      outcome: "transient",
      blockedBy: [{ kind: "secret", namespace: "ns", name: "s" }],
    });
  });
});
