import { describe, expect, test } from "vitest";
import { csiDrivers } from "../../kube/api/csi-driver.ts";
import { given, NODE_ROOT, type NodePodSketch, type NodeWorldSketch } from "../../sim/node-world.ts";
import { fileLabel } from "../linux-selinux.ts";
import type { Selinux } from "../steps/selinux.ts";

/** Section 24 of the specification, on a machine that has SELinux in the simulation alone. */

const POLICY = "system_u:object_r:container_file_t:s0";
const SELINUX: Selinux = { enabled: true, fileLabel: (options) => fileLabel(POLICY, options) };
const DRIVER = { seLinuxMount: true };

function withLevel(level: string): NodePodSketch {
  return { uses: ["v"], spec: { securityContext: { seLinuxOptions: { level } } } };
}

async function world(sketch: NodeWorldSketch = {}) {
  return given({ selinux: SELINUX, driver: DRIVER, volumes: { v: {} }, ...sketch });
}

describe("SELinux labels", () => {
  test("a volume is staged and published with the pod's context, which the records keep, and the runtime relabels nothing", async () => {
    const here = await world({ pods: { web: withLevel("s0:c1") } });

    const context = `context="system_u:object_r:container_file_t:s0:c1"`;
    expect(here.driver.mountFlags).toEqual([[context], [context]]);
    const uid = here.uidOf("web");
    const record = `${NODE_ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-v/vol_data.json`;
    expect(await here.machine.files.read(record)).toContain(
      `"seLinuxMountContext":"system_u:object_r:container_file_t:s0:c1"`,
    );
    expect(here.manager.getMountedVolumesForPod(uid).get("v")?.selinuxRelabel).toBe(false);
  });

  test("two pods with one label share it; one with another waits, says why once, and gets it when the first has gone, device included", async () => {
    const here = await world({ pods: { a: withLevel("s0:c1"), b: withLevel("s0:c1") } });
    here.takeCalls();

    await here.startPod("c", withLevel("s0:c9"));
    await here.runFor(5_000);
    expect(here.takeCalls()).toEqual([]);
    expect(waitOf(here, "c")).toBe("selinux-mismatch");
    const told = here.told().filter((line) => line.includes("different SELinux label"));
    expect(told).toEqual([
      `FailedMount waiting for unmount of volume "pv-v", because it is already mounted to a different pod with a different SELinux label`,
    ]);
    await here.removePod("a");
    await here.runFor(2_000);
    expect(here.takeCalls()).toEqual(["unpublish v a"]);
    await here.removePod("b");
    await here.runFor(2_000);

    expect(here.takeCalls()).toEqual(["unpublish v b", "unstage v", "stage v", "publish v c"]);
    expect(here.driver.mountFlags.at(-1)).toEqual([`context="system_u:object_r:container_file_t:s0:c9"`]);
    expect(here.inUse()).toEqual(["v"]);
  });

  test("after a restart the label is known by the records: the pod keeps it, another still waits", async () => {
    const here = await world({ pods: { a: withLevel("s0:c1") } });
    await here.stop();
    await here.machine.files.removeTree(`${NODE_ROOT}/mooring`);
    here.takeCalls();
    await here.startPod("c", withLevel("s0:c9"));

    here.start();
    await here.runFor(3_000);

    expect(here.takeCalls().filter((call) => call.startsWith("un") || call.endsWith(" c"))).toEqual([]);
    expect(waitOf(here, "c")).toBe("selinux-mismatch");
    await here.removePod("a");
    await here.runFor(3_000);
    expect(here.takeCalls().slice(-4)).toEqual(["unpublish v a", "unstage v", "stage v", "publish v c"]);
  });

  test("the journal keeps the label too", async () => {
    const here = await world({ pods: { a: withLevel("s0:c1") } });
    const [file] = (await here.machine.files.list(`${NODE_ROOT}/mooring/volumes`)) ?? [];

    expect(await here.machine.files.read(`${NODE_ROOT}/mooring/volumes/${file?.name ?? ""}`)).toContain(
      `"selinuxLabel":"system_u:object_r:container_file_t:s0:c1"`,
    );
  });

  test("what the CSIDriver says late still counts for a pod that does not have its volume yet", async () => {
    const here = await world({ driver: {}, attached: false, pods: { web: withLevel("s0:c1") } });
    const value = { spec: { seLinuxMount: true } };
    await here.client.patch(csiDrivers, { name: "csi.example.com" }, { type: "merge", value });
    await here.settle();
    await here.attach("v");
    await here.runFor(1_000);

    expect(here.driver.mountFlags[0]).toEqual([`context="system_u:object_r:container_file_t:s0:c1"`]);
  });

  test("containers with two labels on one volume are refused, and nothing is staged", async () => {
    const volumeMounts = [{ name: "v", mountPath: "/v" }];
    const container = (name: string, level: string) => ({
      name,
      image: "example/app",
      volumeMounts,
      securityContext: { seLinuxOptions: { level } },
    });
    const here = await world({
      pods: { web: { uses: ["v"], containers: [container("a", "s0:c1"), container("b", "s0:c2")] } },
    });

    expect(here.takeCalls()).toEqual([]);
    expect(here.manager.report().unresolved[0]?.message).toContain("multiple SELinux labels found: ");
  });

  for (const [what, sketch] of [
    ["a driver that takes no context", { driver: {} }],
    ["the gate off, ReadWriteOnce", { selinuxMount: false }],
    ["a machine without SELinux", { selinux: { enabled: false, fileLabel: () => "" } }],
  ] as const)
    test(`${what}: mounted without, and pods with different labels share it`, async () => {
      const here = await world({ pods: { a: withLevel("s0:c1"), b: withLevel("s0:c9") }, ...sketch });

      expect(here.driver.mountFlags).toEqual([[], [], []]);
      expect(here.takeCalls().filter((call) => call.startsWith("publish"))).toHaveLength(2);
    });
});

function waitOf(here: Awaited<ReturnType<typeof world>>, pod: string): string | undefined {
  const uid = here.uidOf(pod);
  return here.manager
    .report()
    .volumes.flatMap(({ pods }) => pods)
    .find((each) => each.uid === uid)?.waitingFor?.reason;
}
