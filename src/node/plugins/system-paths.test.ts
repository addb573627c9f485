import { describe, expect, test } from "vitest";
import { createLocalPlugin } from "./local.ts";
import { createStage, persistent, ROOT, setUpOf } from "./plugins.testing.ts";

/** fsGroup of a local volume whose path is a directory of the machine: mounted, told, and no file changes its owner. */

async function given(path: string, prepare?: (stage: ReturnType<typeof createStage>) => Promise<void>) {
  const stage = createStage();
  const { files } = stage.host;
  for (const one of ["/tmp/x", "/etc/ssh", "/usr/lib/x", "/var/lib/db", "/home/a", ROOT, path])
    await files.makeDirectories(one, 0o755);
  await prepare?.(stage);
  await files.writeFile(`${path}/theirs`, Buffer.from(""), 0o600);
  await createLocalPlugin(stage.deps).setUp(setUpOf(persistent({ local: { path } }), { fsGroup: 5 }));
  const gid = (await files.stat(`${path}/theirs`))?.gid;
  return { gid, events: stage.events };
}

describe("a directory of the machine", () => {
  for (const [path, system] of [
    ["/", "/"],
    ["/tmp", "/tmp"],
    ["//tmp/", "/tmp"],
    ["/tmp/.", "/tmp"],
    ["/etc", "/etc"],
    ["/etc/ssh", "/etc"],
    ["/usr/lib/x", "/usr"],
    ["/var", "/var"],
    ["/var/lib", "/var/lib"],
    ["/home", "/home"],
    ["/root/x", "/root"],
    [ROOT, ROOT],
  ] as const)
    test(`${path}: keeps its owners, and the pod is told why`, async () => {
      const { gid, events } = await given(path);

      expect(gid).toBe(0);
      expect(events).toMatchObject([{ type: "Warning", reason: "VolumePermissionChangeSkipped" }]);
      expect(events[0]?.message).toContain(`fsGroup 5 is not applied to volume pv1: ${path} is `);
      expect(events[0]?.message).toContain(system);
    });

  for (const target of ["/etc/ssh", "/usr/lib/x", `${ROOT}/pods`, `${ROOT}/plugins/kubernetes.io`])
    test(`what lies in one, by a link to ${target}`, async () => {
      const { gid, events } = await given("/disks/a", async ({ host }) => {
        await host.files.makeDirectories(target, 0o755);
        await host.files.removeDirectory("/disks/a");
        await host.files.symlink(target, "/disks/a");
      });

      expect(gid).toBe(0);
      expect(events).toMatchObject([{ type: "Warning", reason: "VolumePermissionChangeSkipped" }]);
    });

  test("the directories of pods, with every volume in them", async () => {
    expect((await given(`${ROOT}/pods`)).gid).toBe(0);
  });

  test("by a link or another name of it", async () => {
    const linked = await given("/disks/a", async ({ host }) => {
      await host.files.removeDirectory("/disks/a");
      await host.files.symlink("/tmp", "/disks/a");
    });
    const bound = await given("/disks/b", ({ host }) => host.mounts.bind("/tmp", "/disks/b", []));

    expect([linked.gid, bound.gid]).toEqual([0, 0]);
  });
});

describe("a directory of a volume's own", () => {
  for (const path of ["/data", "/tmp/x", "/var/lib/db", "/home/a", "/mnt", "/mnt/disks/1", "/opt/x", "/srv"])
    test(`${path} is given to the group`, async () => {
      const { gid, events } = await given(path);

      expect(gid).toBe(5);
      expect(events).toEqual([]);
    });
});
