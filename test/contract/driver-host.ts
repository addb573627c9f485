import { describe, expect, test } from "vitest";
import type { Host } from "../../src/driver/host.ts";
import { MIB } from "../../src/driver/options.ts";

export interface HostUnderTest {
  readonly host: Host;
  /** An empty directory of this machine. */
  readonly root: string;
}

/** What the driver relies on of any machine, the one in memory included. */
export function hostContract(name: string, given: () => Promise<HostUnderTest>): void {
  const thin = { thick: false };

  describe(`${name}: files`, () => {
    test("a record is replaced as a whole, listed in order, and gone when removed, twice without complaint", async () => {
      const { host, root } = await given();
      await host.files.writeDurable(`${root}/b`, "one");
      await host.files.writeDurable(`${root}/draft`, "two");
      await host.files.rename(`${root}/draft`, `${root}/b`);
      await host.files.writeDurable(`${root}/a`, "x");

      expect(await host.files.read(`${root}/b`)).toBe("two");
      expect(await host.files.list(root)).toEqual(["a", "b"]);
      for (let again = 0; again < 2; again++) await host.files.removeFile(`${root}/b`);
      expect(await host.files.read(`${root}/b`)).toBeUndefined();
      expect(await host.files.list(`${root}/nowhere`)).toEqual([]);
      expect(await host.files.stat(`${root}/b`)).toBeUndefined();
      expect(await host.files.resolve(`${root}/nowhere/x`)).toBeUndefined();
      expect(await host.files.resolve(`${root}/x`)).toBe(`${root}/x`);
    });

    test("a directory is made once, and removed only when empty", async () => {
      const { host, root } = await given();
      for (let again = 0; again < 2; again++) await host.files.makeDirectory(`${root}/d`, 0o750);
      await host.files.makeFile(`${root}/d/f`);

      await expect(host.files.removeDirectory(`${root}/d`)).rejects.toMatchObject({ code: "NotEmpty" });
      await host.files.removeFile(`${root}/d/f`);
      for (let again = 0; again < 2; again++) await host.files.removeDirectory(`${root}/d`);
      expect(await host.files.list(root)).toEqual([]);
    });

    test("a lock has readers together and a writer alone, ends with its holder, and is none where nothing is", async () => {
      const { host, root } = await given();
      const take = (shared: boolean, signal = new AbortController().signal) =>
        host.files.lock(root, { shared, signal });
      const readers = [await take(true), await take(true)];
      const tired = new AbortController();
      const writer = take(false, tired.signal);

      tired.abort();

      await expect(writer).rejects.toMatchObject({ code: "TimedOut" });
      const patient = take(false);
      for (const release of readers) await release?.();
      await (
        await patient
      )?.();
      const nowhere = { shared: false, signal: new AbortController().signal };
      expect(await host.files.lock(`${root}/nowhere`, nowhere)).toBeUndefined();
      expect(await host.files.list(root)).toEqual([]);
    });

    test("who a file is survives its rename", async () => {
      const { host, root } = await given();
      await host.images.create(`${root}/a`, 4n * MIB, thin);
      const before = await host.files.stat(`${root}/a`);

      await host.files.rename(`${root}/a`, `${root}/b`);

      expect((await host.files.stat(`${root}/b`))?.identity).toBe(before?.identity);
      expect(before).toMatchObject({ kind: "file", sizeBytes: 4n * MIB, allocatedBytes: 0n });
    });
  });

  describe(`${name}: devices and mounts`, () => {
    test("one writable device an image, found by identity; detached means gone", async () => {
      const { host, root } = await given();
      await host.images.create(`${root}/image`, 32n * MIB, thin);

      const device = await host.loops.attach(`${root}/image`, { readonly: false });
      const again = await host.loops.attach(`${root}/image`, { readonly: false });

      expect(again.path).toBe(device.path);
      expect(device.backing).toBe((await host.files.stat(`${root}/image`))?.identity);
      expect(await host.loops.sizeBytes(device.path)).toBe(32n * MIB);
      expect(await host.files.stat(device.path)).toMatchObject({
        kind: "block",
        deviceNumber: device.deviceNumber,
      });
      await host.images.grow(`${root}/image`, 48n * MIB, thin);
      await host.loops.refresh(device.path);
      expect(await host.loops.sizeBytes(device.path)).toBe(48n * MIB);
      for (let twice = 0; twice < 2; twice++) await host.loops.detach(device);
      expect((await host.loops.list()).some(({ backing }) => backing === device.backing)).toBe(false);
    });

    test("blank, formatted, mounted, bound read-only, grown, copied, and all taken down again", async () => {
      const { host, root } = await given();
      const image = `${root}/image`;
      // As long as a kubelet's paths may get: tools put them into their messages, before the word that counts.
      const stage = `${root}/${"stage".padEnd(230, "-")}`;
      const target = `${root}/target`;
      for (const path of [stage, target]) await host.files.makeDirectory(path, 0o750);
      await host.images.create(image, 32n * MIB, thin);
      const device = await host.loops.attach(image, { readonly: false });

      expect(await host.filesystems.probe(device.path)).toEqual({ kind: "blank" });
      await host.filesystems.format(device.path, "ext4");
      expect(await host.filesystems.probe(device.path)).toEqual({ kind: "filesystem", type: "ext4" });
      expect(await host.filesystems.sizeBytes(device.path, "ext4")).toBe(32n * MIB);
      await host.images.grow(image, 48n * MIB, thin);
      await host.loops.refresh(device.path);
      await host.filesystems.check(device.path, "ext4");
      await host.filesystems.grow(device.path, "ext4");
      expect(await host.filesystems.sizeBytes(device.path, "ext4")).toBe(48n * MIB);

      await host.mounts.mount(device.path, stage, "ext4", ["noatime"]);
      await host.mounts.bind(stage, target);
      await host.mounts.remountBind(target, ["ro"]);
      const ours = (await host.mounts.list()).filter(
        ({ deviceNumber }) => deviceNumber === device.deviceNumber,
      );
      expect(ours.map(({ path, readonly }) => [path, readonly])).toEqual([
        [stage, false],
        [target, true],
      ]);
      expect((await host.mounts.usage(stage)).totalBytes).toBeGreaterThan(30n * MIB);
      await expect(host.loops.detach(device)).rejects.toMatchObject({ code: "Busy" });
      await expect(host.files.removeDirectory(target)).rejects.toMatchObject({ code: "Busy" });

      await host.mounts.freeze(stage);
      await host.images.copy(image, `${root}/copy`);
      for (let again = 0; again < 2; again++) await host.mounts.thaw(stage);
      expect((await host.files.stat(`${root}/copy`))?.sizeBytes).toBe(48n * MIB);

      for (const path of [target, stage]) await host.mounts.unmount(path);
      await host.loops.detach(device);
      await host.images.blank(image);
      const fresh = await host.loops.attach(image, { readonly: false });
      expect(await host.filesystems.probe(fresh.path)).toEqual({ kind: "blank" });
      await host.loops.detach(fresh);
    });

    test("a read-only device on top of a writable one, bound over a file", async () => {
      const { host, root } = await given();
      await host.images.create(`${root}/image`, 16n * MIB, thin);
      await host.files.makeFile(`${root}/target`);
      const device = await host.loops.attach(`${root}/image`, { readonly: false });
      const spare = await host.loops.attach(device.path, { readonly: true });

      expect(spare).toMatchObject({
        readonly: true,
        backing: (await host.files.stat(device.path))?.identity,
      });
      await host.mounts.bind(spare.path, `${root}/target`);
      expect(await host.files.stat(`${root}/target`)).toMatchObject({
        kind: "block",
        deviceNumber: spare.deviceNumber,
      });
      await host.mounts.unmount(`${root}/target`);
      expect(await host.files.stat(`${root}/target`)).toMatchObject({ kind: "file" });
      await host.loops.detach(spare);
      await host.loops.detach(device);
    });

    test("each device of a boot is another one, whatever its number; a name that is in use is avoided", async () => {
      const { host, root } = await given();
      for (const name of ["a", "b"]) await host.images.create(`${root}/${name}`, 4n * MIB, thin);
      const first = await host.loops.attach(`${root}/a`, { readonly: false });
      await host.loops.detach(first);
      const second = await host.loops.attach(`${root}/a`, { readonly: false });
      await host.loops.detach(second);

      const other = await host.loops.attach(`${root}/b`, {
        readonly: false,
        avoid: new Set([first.path, second.path]),
      });

      expect(second.diskseq).not.toBe(first.diskseq);
      expect([first.path, second.path]).not.toContain(other.path);
      // Neither is this one, and what is asked for the old ones does not hit it.
      await expect(host.loops.pin(first)).rejects.toMatchObject({ code: "NotFound" });
      await host.loops.detach({ ...first, path: other.path, deviceNumber: other.deviceNumber });
      expect(await host.loops.list()).toContainEqual(other);
      await host.loops.detach(other);
    });

    test("a device in use is marked to go; asked for again it stays, and unmarked it goes with its last user", async () => {
      const { host, root } = await given();
      await host.images.create(`${root}/image`, 4n * MIB, thin);
      const device = await host.loops.attach(`${root}/image`, { readonly: false });
      const now = async () => (await host.loops.list()).find(({ diskseq }) => diskseq === device.diskseq);
      const release = await host.loops.pin(device);
      await expect(host.loops.detach(device)).rejects.toMatchObject({ code: "Busy" });
      expect(await now()).toMatchObject({ path: device.path, autoclear: true });

      const kept = await host.loops.attach(`${root}/image`, { readonly: false });
      await release();

      expect(kept).toEqual(device);
      expect(await now()).toEqual(device);
      const again = await host.loops.pin(device);
      await expect(host.loops.detach(device)).rejects.toMatchObject({ code: "Busy" });
      await again();
      expect(await now()).toBeUndefined();
    });

    test("a clone is a whole copy, or the filesystem cannot and nothing is left", async () => {
      const { host, root } = await given();
      await host.images.create(`${root}/image`, 4n * MIB, thin);

      const outcome = await host.images.clone(`${root}/image`, `${root}/clone`).then(
        () => "cloned",
        (error: unknown) => (error as { code?: string }).code,
      );

      const copy = await host.files.stat(`${root}/clone`);
      expect([outcome, copy?.sizeBytes]).toEqual(
        outcome === "cloned" ? ["cloned", 4n * MIB] : ["NotSupported", undefined],
      );
    });
  });
}
