import { describe, expect, test } from "vitest";
import { holderOf, type Holder } from "../../src/node/evidence/holders.ts";
import { questionOfPod } from "../../src/node/evidence/questions.ts";
import type { Host } from "../../src/node/host.ts";
import { createPaths } from "../../src/node/paths.ts";

export interface ContainerSketch {
  /** What it gets as mounts of its own, in a namespace of its own. */
  readonly binds?: readonly string[];
  /** Devices that it keeps open. */
  readonly opens?: readonly string[];
  /** Instead of all that: a process of the host that works in there. */
  readonly worksIn?: string;
}

export interface ProcessesUnderTest {
  readonly host: Host;
  /** An empty directory of this machine. */
  readonly root: string;
  /** A blank block device. */
  readonly device: (sizeBytes: number) => Promise<string>;
  /** Starts a process that lives until `end`. */
  readonly container: (
    sketch: ContainerSketch,
  ) => Promise<{ readonly pid: number; readonly end: () => Promise<void> }>;
}

const UID = "11111111-1111-4111-8111-111111111111";

export async function holderBelow(host: Host, root: string, podUid = UID): Promise<Holder | undefined> {
  const question = questionOfPod({ paths: createPaths(root) }, podUid, await host.mounts.table());
  const filesystems = question.targets.map(({ deviceNumber }) => deviceNumber);
  return holderOf(await host.processes.scan({ filesystems, devices: [] }), question);
}

export async function givenVolume(
  { host, root, device }: Pick<ProcessesUnderTest, "host" | "root" | "device">,
  kind: "filesystem" | "tmpfs" | "directory",
): Promise<string> {
  const path = `${createPaths(root).podVolumes(UID)}/kubernetes.io~csi/v`;
  await host.files.makeDirectories(`${path}/sub`, 0o755);
  if (kind === "directory") return path;
  const tmpfs = { source: "tmpfs", target: path, type: "tmpfs", options: [] };
  if (kind === "tmpfs") await host.mounts.mount(tmpfs);
  else
    await host.mounts.formatAndMount({
      source: await device(8 << 20),
      target: path,
      type: "ext4",
      options: [],
    });
  await host.files.makeDirectories(`${path}/sub`, 0o755);
  return path;
}

/** Who has a volume, by the kernel: the same answers from any machine, the one in memory included. */
export function nodeProcessesContract(name: string, given: () => Promise<ProcessesUnderTest>): void {
  describe(`${name}: who has a volume`, () => {
    for (const kind of ["filesystem", "tmpfs", "directory"] as const)
      for (const part of ["", "/sub"])
        test(`a ${kind}: whoever got ${part === "" ? "it" : "a part of it"} as a mount of its own, until it ends`, async () => {
          const machine = await given();
          const { host, root, container } = machine;
          const path = await givenVolume(machine, kind);
          expect(await holderBelow(host, root)).toBeUndefined();

          const { pid, end } = await container({ binds: [`${path}${part}`] });

          expect((await holderBelow(host, root))?.by.pid).toBe(pid);
          if (kind !== "directory") {
            await host.mounts.unmount(path);
            // Unmounted here it is there still: this is how a second writer comes to be.
            const filesystems = await host.processes.scan({ filesystems: [], devices: [] });
            expect(filesystems.namespaces.length).toBeGreaterThan(1);
          }
          await end();
          expect(await holderBelow(host, root)).toBeUndefined();
        });

    test("somebody who got something else has nothing of it, whatever it is", async () => {
      const machine = await given();
      const { host, root, container } = machine;
      await givenVolume(machine, "filesystem");
      await host.files.makeDirectories(`${root}/pods/other/volumes`, 0o755);
      const { end } = await container({ binds: [`${root}/pods/other`] });

      expect(await holderBelow(host, root)).toBeUndefined();
      await end();
    });

    test("whoever works in a mounted volume is told, and only where that is asked for", async () => {
      const machine = await given();
      const { host, container } = machine;
      const path = await givenVolume(machine, "tmpfs");
      const mountPoints = [path];
      expect((await host.processes.scan({ filesystems: [], devices: [], mountPoints })).users).toEqual([]);

      const { pid, end } = await container({ worksIn: `${path}/sub` });

      const scan = await host.processes.scan({ filesystems: [], devices: [], mountPoints });
      expect(scan.users).toMatchObject([
        { pid, mountPoint: path, how: `has its working directory at ${path}/sub` },
      ]);
      expect((await host.processes.scan({ filesystems: [], devices: [] })).users).toEqual([]);
      await end();
      expect((await host.processes.scan({ filesystems: [], devices: [], mountPoints })).users).toEqual([]);
    });

    test("whoever has a block device open is told, and only where that is asked for", async () => {
      const { host, device, container } = await given();
      const [mine, other] = [await device(1 << 20), await device(1 << 20)];
      const number = (await host.files.statTarget(mine))?.deviceNumber ?? "";
      const [has, hasNot] = [await container({ opens: [mine] }), await container({ opens: [other] })];

      const { openers } = await host.processes.scan({ filesystems: [], devices: [number] });
      expect(openers.map(({ pid, deviceNumber }) => [pid, deviceNumber])).toEqual([[has.pid, number]]);
      expect((await host.processes.scan({ filesystems: [], devices: [] })).openers).toEqual([]);
      await has.end();
      await hasNot.end();
      const later = await host.processes.scan({ filesystems: [], devices: [number] });
      expect(later.openers).toEqual([]);
    });
  });
}
