import { describe, expect, test } from "vitest";
import { nodes } from "../kube/api/node.ts";
import { given } from "./attach-detach-world.ts";

/** A world in which the test is the attach/detach controller. */
async function givenKubelet(sketch: Parameters<typeof given>[0] = {}) {
  return given({ nodes: ["n1"], kubelets: true, started: false, attacher: "by-hand", ...sketch });
}

type World = Awaited<ReturnType<typeof givenKubelet>>;

async function list(world: World, volumes: readonly string[]): Promise<void> {
  await world.setAttached("n1", volumes);
  await world.settle();
}

const mounts = (world: World) =>
  world.kubelet("n1").records.map(({ what, volume }) => `${what} ${world.labels.volume(volume)}`);

describe("the simulated kubelet", () => {
  test("says that it uses a volume, and mounts it only when it is listed as attached", async () => {
    const world = await givenKubelet({ pods: { web: { on: "n1", uses: ["v"] } } });
    expect(world.volumesInUse("n1")).toEqual(["v"]);
    expect(mounts(world)).toEqual([]);

    await list(world, ["v"]);

    expect(mounts(world)).toEqual(["mount v"]);
    expect(world.pod("web")?.status?.phase).toBe("Running");
  });

  test("unmounts and stops using what a deleted pod used, then lets the pod go", async () => {
    const world = await givenKubelet({ pods: { web: { on: "n1", uses: ["v"] } } });
    await list(world, ["v"]);

    await world.deletePod("web");
    await world.settle();

    expect(mounts(world)).toEqual(["mount v", "unmount v"]);
    expect(world.volumesInUse("n1")).toEqual([]);
    expect(world.pod("web")).toBeUndefined();
  });

  test("keeps what another pod still uses", async () => {
    const world = await givenKubelet({
      pods: { one: { on: "n1", uses: ["v"] }, two: { on: "n1", uses: ["v"] } },
    });
    await list(world, ["v"]);

    await world.removePod("one");
    await world.settle();

    expect(mounts(world)).toEqual(["mount v"]);
    expect(world.volumesInUse("n1")).toEqual(["v"]);
  });

  test("holds what it uses until its containers have ended, and reports late if its status is slow", async () => {
    const world = await givenKubelet({
      kubelets: { terminateMs: 5_000, statusLatencyMs: 10_000 },
      pods: { web: { on: "n1", uses: ["v"] } },
    });
    await world.advance(10_000);
    await list(world, ["v"]);
    expect(mounts(world)).toEqual(["mount v"]);

    await world.deletePod("web");
    await world.advance(4_900);
    expect(mounts(world)).toEqual(["mount v"]);
    await world.advance(5_000);
    expect(mounts(world)).toEqual(["mount v", "unmount v"]);
    expect(world.volumesInUse("n1")).toEqual(["v"]);
    await world.advance(6_000);

    expect(world.volumesInUse("n1")).toEqual([]);
  });

  test("what a pod that is over used is unmounted, though the pod stays", async () => {
    const world = await givenKubelet({ pods: { web: { on: "n1", uses: ["v"] } } });
    await list(world, ["v"]);

    await world.setPodStatus("web", { phase: "Succeeded" });
    await world.settle();

    expect(mounts(world)).toEqual(["mount v", "unmount v"]);
    expect(world.volumesInUse("n1")).toEqual([]);
    expect(world.pod("web")).toBeDefined();
  });

  test("a pod removed by force still runs until its containers have ended", async () => {
    const world = await givenKubelet({
      kubelets: { terminateMs: 5_000 },
      pods: { web: { on: "n1", uses: ["v"] } },
    });
    await list(world, ["v"]);

    await world.removePod("web");
    await world.advance(4_900);
    expect(world.volumesInUse("n1")).toEqual(["v"]);
    expect(mounts(world)).toEqual(["mount v"]);
    await world.advance(500);

    expect(world.volumesInUse("n1")).toEqual([]);
    expect(mounts(world)).toEqual(["mount v", "unmount v"]);
  });

  test("dead, it changes nothing; back, it goes on from what is mounted", async () => {
    const world = await givenKubelet({ pods: { web: { on: "n1", uses: ["v"] } } });
    await list(world, ["v"]);

    world.stopKubelet("n1");
    await world.removePod("web");
    await world.settle();
    expect(world.kubelet("n1").running).toBe(false);
    expect(world.volumesInUse("n1")).toEqual(["v"]);
    world.startKubelet("n1");
    await world.settle();

    expect(mounts(world)).toEqual(["mount v", "unmount v"]);
    expect(world.read(nodes, { name: "n1" })?.status?.volumesInUse ?? []).toEqual([]);
  });

  test("waits for nothing where the driver needs no attaching", async () => {
    const world = await givenKubelet({
      drivers: { "csi.example.com": { attachRequired: false } },
      pods: { web: { on: "n1", uses: ["v"] } },
    });

    expect(world.pod("web")?.status?.phase).toBe("Running");
    expect(world.volumesInUse("n1")).toEqual([]);
  });

  test("a claim that is bound later is found", async () => {
    const world = await givenKubelet({
      volumes: { v: { claim: "pending" } },
      pods: { web: { on: "n1", uses: ["v"] } },
    });
    expect(world.volumesInUse("n1")).toEqual([]);

    await world.bindClaim("v");
    await world.advance(1_000);

    expect(world.volumesInUse("n1")).toEqual(["v"]);
  });
});
