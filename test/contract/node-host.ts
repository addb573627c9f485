import { describe, expect, test } from "vitest";
import type { Host } from "../../src/node/host.ts";

export interface NodeHostUnderTest {
  readonly host: Host;
  /** An empty directory of this machine. */
  readonly root: string;
  /** A blank block device. */
  readonly device: (sizeBytes: number) => Promise<string>;
}

const MIB = 1 << 20;
const never = new AbortController().signal;

/** What the agent relies on of any machine, the one in memory included. */
export function nodeHostContract(name: string, given: () => Promise<NodeHostUnderTest>): void {
  describe(`${name}: files`, () => {
    test("a record is replaced as a whole, and gone when removed, twice without complaint", async () => {
      const { host, root } = await given();
      await host.files.writeDurable(`${root}/record`, "one", 0o640);
      await Promise.all(["two", "three"].map((text) => host.files.writeDurable(`${root}/record`, text)));

      expect(await host.files.read(`${root}/record`)).toBe("three");
      expect(await host.files.list(root)).toEqual([{ name: "record", kind: "file" }]);
      for (let again = 0; again < 2; again++) await host.files.removeFile(`${root}/record`);
      expect(await host.files.read(`${root}/record`)).toBeUndefined();
      expect(await host.files.readBytes(`${root}/record`)).toBeUndefined();
      expect(await host.files.list(`${root}/nowhere`)).toBeUndefined();
      expect(await host.files.list(root)).toEqual([]);
    });

    test("modes are exact whatever the umask, and a directory that is there keeps its own", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/a/b`, 0o777);
      await host.files.makeDirectories(`${root}/a/b`, 0o700);
      await host.files.writeFile(`${root}/a/f`, Buffer.from("x"), 0o666);
      await host.files.makeFile(`${root}/a/g`, 0o640);
      await host.files.makeFile(`${root}/a/f`, 0o600);

      expect(await host.files.stat(`${root}/a/b`)).toMatchObject({ kind: "directory", mode: 0o777 });
      expect(await host.files.stat(`${root}/a/f`)).toMatchObject({ kind: "file", mode: 0o666, sizeBytes: 1 });
      expect(await host.files.stat(`${root}/a/g`)).toMatchObject({ mode: 0o640, sizeBytes: 0 });
      await host.files.chmod(`${root}/a/g`, 0o2770);
      await host.files.chown(`${root}/a/g`, { uid: 12, gid: 34 });
      await host.files.chown(`${root}/a/g`, { gid: 56 });
      expect(await host.files.stat(`${root}/a/g`)).toMatchObject({ uid: 12, gid: 56 });
      await expect(host.files.makeDirectories(`${root}/a/f`, 0o750)).rejects.toMatchObject({
        code: "Exists",
      });
    });

    test("links: the link itself, what it points at, and one that points nowhere", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/d`, 0o755);
      await host.files.symlink("d", `${root}/link`);
      await host.files.symlink("missing", `${root}/dangling`);

      expect(await host.files.readLink(`${root}/link`)).toBe("d");
      expect(await host.files.readLink(`${root}/d`)).toBeUndefined();
      expect(await host.files.readLink(`${root}/nothing`)).toBeUndefined();
      expect((await host.files.stat(`${root}/link`))?.kind).toBe("symlink");
      expect((await host.files.statTarget(`${root}/link`))?.kind).toBe("directory");
      expect(await host.files.realPath(`${root}/link`)).toBe(`${root}/d`);
      expect(await host.files.statTarget(`${root}/dangling`)).toBeUndefined();
      expect(await host.files.realPath(`${root}/dangling`)).toBeUndefined();
      expect(await host.files.stat(`${root}/d/x/y`)).toBeUndefined();
      await expect(host.files.symlink("d", `${root}/link`)).rejects.toMatchObject({ code: "Exists" });
      await host.files.symlink("dangling", `${root}/new`);
      await host.files.rename(`${root}/new`, `${root}/link`);
      expect(await host.files.readLink(`${root}/link`)).toBe("dangling");
    });

    test("a directory goes only when empty; a tree goes with what links point at left alone", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/kept`, 0o755);
      await host.files.writeFile(`${root}/kept/precious`, Buffer.from("x"), 0o600);
      await host.files.makeDirectories(`${root}/tree/a/b`, 0o755);
      await host.files.writeFile(`${root}/tree/a/f`, Buffer.from("x"), 0o400);
      await host.files.symlink("../../kept", `${root}/tree/a/link`);

      await expect(host.files.removeDirectory(`${root}/tree`)).rejects.toMatchObject({ code: "NotEmpty" });
      for (let again = 0; again < 2; again++) await host.files.removeTree(`${root}/tree`);
      expect(await host.files.list(root)).toEqual([{ name: "kept", kind: "directory" }]);
      expect(await host.files.read(`${root}/kept/precious`)).toBe("x");
      await host.files.removeTree(`${root}/kept/precious`);
      for (let again = 0; again < 2; again++) await host.files.removeDirectory(`${root}/kept`);
      await host.files.removeTree(`${root}/no/where`);
    });

    test("space and inodes: of the filesystem, and of what is below a directory", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/d/e`, 0o755);
      await host.files.writeFile(`${root}/d/f`, Buffer.alloc(100_000, 1), 0o600);

      const usage = await host.files.usage(root);
      const below = await host.files.diskUsage(`${root}/d`);

      expect(usage.capacityBytes).toBeGreaterThan(usage.availableBytes);
      expect(usage.inodes).toBe(usage.inodesFree + usage.inodesUsed);
      expect(below.inodesUsed).toBe(3);
      expect(below.usedBytes).toBeGreaterThanOrEqual(100_000);
      await expect(host.files.usage(`${root}/nowhere`)).rejects.toMatchObject({ code: "NotFound" });
    });
  });

  describe(`${name}: group ownership`, () => {
    test("every file gets the group and its bits, a link keeps its target untouched", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/v/d`, 0o700);
      await host.files.writeFile(`${root}/v/d/f`, Buffer.from("x"), 0o600);
      await host.files.writeFile(`${root}/outside`, Buffer.from("x"), 0o600);
      await host.files.symlink("../outside", `${root}/v/link`);

      const progress: number[] = [];
      const done = await host.files.applyGroup({
        path: `${root}/v`,
        gid: 3000,
        readOnly: false,
        onRootMismatch: true,
        onProgress: (files) => progress.push(files),
        signal: never,
      });

      expect(done).toEqual({ files: 4, failed: 0, errors: [] });
      expect(await host.files.stat(`${root}/v`)).toMatchObject({ gid: 3000, uid: 0, mode: 0o2770 });
      expect(await host.files.stat(`${root}/v/d`)).toMatchObject({ gid: 3000, mode: 0o2770 });
      expect(await host.files.stat(`${root}/v/d/f`)).toMatchObject({ gid: 3000, mode: 0o660 });
      expect(await host.files.stat(`${root}/v/link`)).toMatchObject({ gid: 3000 });
      expect(await host.files.stat(`${root}/outside`)).toMatchObject({ gid: 0, mode: 0o600 });
    });

    test("scenario 130: OnRootMismatch walks unless the root has group, bits and setgid", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/v`, 0o755);
      await host.files.writeFile(`${root}/v/f`, Buffer.from("x"), 0o600);
      const apply = async (onRootMismatch: boolean) =>
        (
          await host.files.applyGroup({
            path: `${root}/v`,
            gid: 3000,
            readOnly: false,
            onRootMismatch,
            signal: never,
          })
        ).files;

      await host.files.chown(`${root}/v`, { gid: 3000 });
      await host.files.chmod(`${root}/v`, 0o2770);
      expect(await apply(true)).toBe(0);
      expect(await apply(false)).toBe(2);
      await host.files.chmod(`${root}/v`, 0o770);
      expect(await apply(true)).toBe(2);
    });

    test("read-only volumes get bits to read; a signal that has aborted ends it before anything changes", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/v`, 0o700);
      await host.files.writeFile(`${root}/v/f`, Buffer.from("x"), 0o400);
      const request = { path: `${root}/v`, gid: 3000, readOnly: true, onRootMismatch: false };

      await expect(host.files.applyGroup({ ...request, signal: AbortSignal.abort() })).rejects.toThrow(
        /abort/i,
      );
      expect(await host.files.stat(`${root}/v`)).toMatchObject({ gid: 0 });
      await host.files.applyGroup({ ...request, signal: never });
      expect(await host.files.stat(`${root}/v/f`)).toMatchObject({ gid: 3000, mode: 0o440 });
      expect(await host.files.stat(`${root}/v`)).toMatchObject({ gid: 3000, mode: 0o2750 });
    });
  });

  describe(`${name}: mounts`, () => {
    test("a tmpfs is mounted, grown, found in the table, and cleaned up, twice without complaint", async () => {
      const { host, root } = await given();
      const target = `${root}/with blank`;
      await host.files.makeDirectories(target, 0o750);
      await host.mounts.mount({ source: "tmpfs", target, type: "tmpfs", options: ["size=1048576"] });

      expect(await host.mounts.isMountPoint(target)).toBe(true);
      expect(await host.mounts.isMountPoint(root)).toBe(false);
      expect((await host.mounts.table()).at(target)).toMatchObject({ type: "tmpfs", root: "/" });
      expect(await host.files.usage(target)).toMatchObject({ type: "tmpfs", capacityBytes: MIB });
      await host.mounts.remount(target, ["size=2097152"]);
      expect((await host.mounts.table()).at(target)?.options).toEqual(
        expect.arrayContaining([expect.stringMatching(/^size=(2097152|2048k)$/)]),
      );
      await expect(host.files.removeDirectory(target)).rejects.toMatchObject({ code: "Busy" });
      await expect(host.files.removeTree(root)).rejects.toMatchObject({ code: "Busy" });
      for (let again = 0; again < 2; again++) await host.mounts.cleanUp(target);
      expect(await host.mounts.isMountPoint(target)).toBe(false);
      expect(await host.files.list(root)).toEqual([]);
      await expect(host.mounts.unmount(target)).rejects.toMatchObject({ code: "NotFound" });
    });

    test("a mount point is one by whatever link its parent is named", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/real/m`, 0o750);
      await host.files.symlink("real", `${root}/alias`);
      await host.mounts.mount({ source: "tmpfs", target: `${root}/real/m`, type: "tmpfs", options: [] });

      expect(await host.mounts.isMountPoint(`${root}/alias/m`)).toBe(true);
      expect(await host.mounts.isMountPoint(`${root}/alias/none`)).toBe(false);
      expect(await host.mounts.isMountPoint(`${root}/none/none`)).toBe(false);
      await host.mounts.unmount(`${root}/alias/m`);
      expect(await host.mounts.isMountPoint(`${root}/real/m`)).toBe(false);
    });

    test("a read-only bind refuses writes, is found as a reference, and hides nothing of its source's flags", async () => {
      const { host, root } = await given();
      for (const name of ["a", "b", "c"]) await host.files.makeDirectories(`${root}/${name}`, 0o750);
      const options = ["nosuid", "nodev", "noexec"];
      await host.mounts.mount({ source: "tmpfs", target: `${root}/a`, type: "tmpfs", options });

      await host.mounts.bind(`${root}/a`, `${root}/b`, ["bind", "ro"]);
      await host.mounts.bind(`${root}/a`, `${root}/c`, []);

      const table = await host.mounts.table();
      expect(table.at(`${root}/b`)?.options).toEqual(expect.arrayContaining(["ro", ...options]));
      expect(table.at(`${root}/c`)?.options).toEqual(expect.arrayContaining(["rw", ...options]));
      expect([...table.references(`${root}/a`)].sort()).toEqual([`${root}/b`, `${root}/c`]);
      expect(table.below(root).map(({ path }) => path)).toEqual([`${root}/a`, `${root}/b`, `${root}/c`]);
      await expect(host.files.writeFile(`${root}/b/f`, Buffer.from("x"), 0o600)).rejects.toMatchObject({
        code: "NotPermitted",
      });
      await host.files.writeFile(`${root}/c/f`, Buffer.from("x"), 0o600);
      expect(await host.files.read(`${root}/b/f`)).toBe("x");
      for (const name of ["c", "b", "a"]) await host.mounts.cleanUp(`${root}/${name}`);
    });

    test("two mounts at one path come off one by one; a clean-up takes both", async () => {
      const { host, root } = await given();
      const target = `${root}/m`;
      await host.files.makeDirectories(target, 0o750);
      for (let layer = 0; layer < 2; layer++)
        await host.mounts.mount({ source: "tmpfs", target, type: "tmpfs", options: [] });

      await host.mounts.unmount(target);
      expect(await host.mounts.isMountPoint(target)).toBe(true);
      await host.mounts.mount({ source: "tmpfs", target, type: "tmpfs", options: [] });
      await host.mounts.cleanUp(target);
      expect(await host.files.stat(target)).toBeUndefined();
    });

    test("a clean-up removes what is empty and nothing else", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/full`, 0o750);
      await host.files.writeFile(`${root}/full/f`, Buffer.from("x"), 0o600);
      await host.files.makeFile(`${root}/empty`, 0o640);

      await expect(host.mounts.cleanUp(`${root}/full`)).rejects.toMatchObject({ code: "NotEmpty" });
      await expect(host.mounts.cleanUp(`${root}/full/f`)).rejects.toMatchObject({ code: "NotEmpty" });
      await host.mounts.cleanUp(`${root}/empty`);
      expect((await host.files.list(root))?.map(({ name }) => name)).toEqual(["full"]);
    });

    test("sharing a directory binds it onto itself, once", async () => {
      const { host, root } = await given();
      for (let again = 0; again < 2; again++) await host.mounts.makeShared(root);

      expect((await host.mounts.table()).points.filter(({ path }) => path === root)).toHaveLength(1);
      await host.mounts.unmount(root);
    });
  });

  describe(`${name}: devices`, () => {
    test("a blank device is formatted once, mounted again with its content, and never under another type", async () => {
      const { host, root, device } = await given();
      const source = await device(32 * MIB);
      const target = `${root}/m`;
      await host.files.makeDirectories(target, 0o750);
      const request = { source, target, type: "ext4", options: [] };

      await expect(host.mounts.formatAndMount({ ...request, options: ["ro"] })).rejects.toMatchObject({
        code: "Failed",
      });
      await host.mounts.formatAndMount(request);
      await host.files.writeFile(`${target}/f`, Buffer.from("kept"), 0o600);
      expect(await host.devices.isInUse(source)).toBe(true);
      await host.mounts.unmount(target);
      expect(await host.devices.isInUse(source)).toBe(false);
      await expect(host.mounts.formatAndMount({ ...request, type: "xfs" })).rejects.toMatchObject({
        code: "FilesystemMismatch",
      });
      await host.mounts.formatAndMount({ ...request, type: "", options: ["ro"] });
      expect(await host.files.read(`${target}/f`)).toBe("kept");
      await host.mounts.cleanUp(target);
    });

    test("a device bound over a file is that device, held by one loop device until it is let go", async () => {
      const { host, root, device } = await given();
      const source = await device(8 * MIB);
      const file = `${root}/map/pod`;
      await host.files.makeDirectories(`${root}/map`, 0o750);
      await host.files.makeFile(file, 0o640);
      await host.mounts.bind(source, file, ["bind"]);

      const [given_, bound] = [await host.files.stat(source), await host.files.stat(file)];
      expect(bound).toMatchObject({ kind: "block", deviceNumber: given_?.deviceNumber });
      expect(await host.devices.sizeBytes(file)).toBe(8 * MIB);
      const loop = await host.devices.attachLoop(file);
      expect(await host.devices.attachLoop(file)).toBe(loop);
      expect(await host.devices.loopOf(file)).toBe(loop);
      expect(await host.devices.growFilesystem(source, "")).toBe(false);
      for (let again = 0; again < 2; again++) await host.devices.detachLoop(file);
      expect(await host.devices.loopOf(file)).toBeUndefined();
      await host.mounts.cleanUp(file);
      expect(await host.files.stat(file)).toBeUndefined();
      expect(await host.devices.isInUse(`${root}/nothing`)).toBe(false);
      expect(await host.devices.isInUse(root)).toBe(false);
    });
  });

  describe(`${name}: subPath`, () => {
    test("a missing directory is made with the mode of the root, and bound; again changes nothing", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/v`, 0o755);
      await host.files.chmod(`${root}/v`, 0o2775);
      const request = { root: `${root}/v`, subPath: "a/b", target: `${root}/sub/c/0`, readOnly: false };

      for (let again = 0; again < 2; again++) await host.files.bindSubPath(request);
      await host.files.writeFile(`${root}/sub/c/0/f`, Buffer.from("x"), 0o600);

      expect(await host.files.read(`${root}/v/a/b/f`)).toBe("x");
      expect(await host.files.stat(`${root}/v/a`)).toMatchObject({ mode: 0o2775 });
      expect((await host.mounts.table()).below(`${root}/sub`)).toHaveLength(1);
      await host.mounts.cleanUp(`${root}/sub/c/0`);
    });

    test("scenario 131: a replaced source is bound anew, read-only where asked", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/v/a`, 0o755);
      const request = { root: `${root}/v`, subPath: "a", target: `${root}/sub`, readOnly: true };
      await host.files.bindSubPath(request);

      await host.files.rename(`${root}/v/a`, `${root}/v/old`);
      await host.files.makeDirectories(`${root}/v/a`, 0o755);
      await host.files.writeFile(`${root}/v/a/new`, Buffer.from("x"), 0o600);
      await host.files.bindSubPath(request);

      expect(await host.files.read(`${root}/sub/new`)).toBe("x");
      expect((await host.mounts.table()).below(`${root}/sub`)).toHaveLength(1);
      await expect(host.files.makeFile(`${root}/sub/f`, 0o600)).rejects.toMatchObject({
        code: "NotPermitted",
      });
      await host.mounts.cleanUp(`${root}/sub`);
    });

    test("a single file, and a link that stays inside, are bound as what they are", async () => {
      const { host, root } = await given();
      await host.files.makeDirectories(`${root}/v/d/e`, 0o755);
      await host.files.writeFile(`${root}/v/d/f`, Buffer.from("x"), 0o644);
      await host.files.symlink("../d/e/../f", `${root}/v/d/link`);
      const request = { root: `${root}/v`, subPath: "d/link", target: `${root}/sub/0`, readOnly: false };

      await host.files.bindSubPath(request);

      expect(await host.files.read(`${root}/sub/0`)).toBe("x");
      await host.mounts.cleanUp(`${root}/sub/0`);
    });

    for (const [what, link] of [
      ["an absolute link", "/etc"],
      ["a link upwards", "../../.."],
      ["a link to itself", "evil"],
    ] as const)
      test(`scenario 131: ${what} is refused, and nothing is left behind`, async () => {
        const { host, root } = await given();
        await host.files.makeDirectories(`${root}/v`, 0o755);
        await host.files.symlink(link, `${root}/v/evil`);
        const request = { root: `${root}/v`, subPath: "evil/x", target: `${root}/sub/0`, readOnly: false };

        await expect(host.files.bindSubPath(request)).rejects.toMatchObject({ code: "Outside" });
        expect((await host.files.list(root))?.map(({ name }) => name)).toEqual(["v"]);
        expect((await host.mounts.table()).below(root)).toEqual([]);
      });

    for (const subPath of ["/etc", "..", "a/../../b", "a/.."])
      test(`"${subPath}" is no subPath`, async () => {
        const { host, root } = await given();
        await host.files.makeDirectories(`${root}/v`, 0o755);
        const request = { root: `${root}/v`, subPath, target: `${root}/sub`, readOnly: false };

        await expect(host.files.bindSubPath(request)).rejects.toMatchObject({ code: "Outside" });
        expect(await host.files.list(`${root}/v`)).toEqual([]);
      });
  });

  test(`${name}: a program that is not installed is told from one that fails`, async () => {
    const { host } = await given();

    await expect(host.programs.run("no-such-program", [], { timeoutMs: 1_000 })).rejects.toMatchObject({
      code: "NoTool",
    });
  });
}
