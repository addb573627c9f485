import { describe, expect, test } from "vitest";
import { csiVolumeName } from "../../volumes/names.ts";
import { createCsiPlugin } from "./csi.ts";
import { givenCsi, pv } from "./csi-stage.testing.ts";
import { ROOT } from "./plugins.testing.ts";

/*
 * kill -9 before or after every change the plugin makes to the machine, in the whole life of a volume. The next process
 * knows nothing but the disk and the mount table.
 */

const POD_DIR = `${ROOT}/pods/u1/volumes/kubernetes.io~csi/pv1`;
const volume = csiVolumeName({ driver: "d", volumeHandle: "h1" });
const block = pv({ volumeMode: "Block" });

type World = ReturnType<typeof givenCsi>;

async function filesystemLife(world: World): Promise<void> {
  await world.stage(pv());
  await world.publish(pv());
  await world.unpublish(pv());
  await world.unstage(pv());
}

async function blockLife(world: World): Promise<void> {
  await world.setUpDevice(block);
  await world.mapPodDevice(block);
  await world.unmapPodDevice(block);
  await world.tearDownDevice(block);
}

/** Lives once for every change there is, dying at it; calls `then` with what is left. */
async function killedEverywhere(
  life: (world: World) => Promise<void>,
  then: (world: World, at: string) => Promise<void>,
): Promise<number> {
  let deaths = 0;
  for (const when of ["before", "after"] as const) {
    for (let change = 0; ; change++) {
      const world = givenCsi();
      world.host.dieAt(change, when);
      await Promise.race([life(world), world.scheduler.runFor(1)]);
      if (!world.host.isDead) break;
      deaths++;
      await then(world, `killed ${when} change ${change}: ${world.host.log.at(-1)}`);
    }
  }
  return deaths;
}

const { signal } = new AbortController();
const remains = (world: World) => world.machine.describe(ROOT).filter((line) => / file|mounted/.test(line));

describe("kill -9", () => {
  test("of a filesystem volume: whatever is mounted is found and taken down; no file and no mount is left", async () => {
    const deaths = await killedEverywhere(filesystemLife, async (world, at) => {
      const plugin = createCsiPlugin({ ...world.context, host: world.machine });
      const staged = await plugin.findStaged!();
      const mounted = world.machine.describe(ROOT).some((line) => / mounted/.test(line));
      const found = await plugin.reconstruct({
        podUid: "u1",
        specName: "pv1",
        mode: "Filesystem",
        path: POD_DIR,
      });
      if (mounted)
        expect(
          staged.map((one) => one.volume),
          at,
        ).toEqual([volume]);

      await plugin.tearDown({ volume, podUid: "u1", specName: "pv1", spec: found?.spec, signal });
      for (const { path, spec } of staged)
        await plugin.device!.unmount({ volume, spec, deviceMountPath: path, devicePath: "", signal });

      expect(remains(world), at).toEqual([]);
    });

    expect(deaths).toBeGreaterThan(20);
  });

  test("of a filesystem volume whose pod still runs: staged and published again, mounted once", async () => {
    const deaths = await killedEverywhere(
      async (world) => {
        await world.stage(pv());
        await world.publish(pv());
      },
      async (world, at) => {
        const plugin = createCsiPlugin({ ...world.context, host: world.machine });
        const deviceMountPath = plugin.device!.mountPath(pv());
        const common = {
          volume,
          spec: pv(),
          podUid: "u1",
          devicePath: "",
          deviceMountPath,
          mayBeThere: true,
          signal,
        };
        const pod = { metadata: { name: "p1", namespace: "ns", uid: "u1" } };

        await plugin.device!.mount({ ...common, pod });
        await plugin.setUp({ ...common, pod, isRemount: false });

        const mounts = world.machine.describe(ROOT).filter((line) => / mounted/.test(line));
        expect(mounts, at).toHaveLength(2);
      },
    );

    expect(deaths).toBeGreaterThan(8);
  });

  test("of a block volume: everything of it is found by its record and removed", async () => {
    const deaths = await killedEverywhere(blockLife, async (world, at) => {
      const plugin = createCsiPlugin({ ...world.context, host: world.machine });
      for (const { spec, path } of await plugin.findStaged!()) {
        const known = { volume, spec, specName: "pv1", signal };
        await plugin.block!.unmapPodDevice!({ ...known, podUid: "u1" });
        await plugin.block!.tearDownDevice!({ ...known, globalMapPath: path, devicePath: "" });
      }

      expect(remains(world), at).toEqual([]);
    });

    expect(deaths).toBeGreaterThan(20);
  });
});
