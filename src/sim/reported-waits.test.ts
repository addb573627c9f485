import { expect, test } from "vitest";
import { volumeAttachmentName } from "../volumes/names.ts";
import { reportedWaits } from "./reported-waits.ts";
import type { World } from "./world.ts";

const DRIVER = "san.csi.example.com";

/** A controller that waits with one volume on node-1, in a cluster with the disk d5. */
function handleOf(volume: string): string | undefined {
  const since = "2026-01-01T00:00:00Z";
  const waitingFor = {
    reason: "still-mounted",
    object: { kind: "Node", name: "node-1" },
    since,
    message: "",
  };
  const report = () => ({ time: since, volumes: [{ volume, node: "node-1", waitingFor }], unresolved: [] });
  const world = {
    scheduler: { nowMs: 0 },
    controllers: new Map([["controller-0", () => ({ report })]]),
    processes: new Map([["controller-0", { isRunning: true }]]),
    nodes: new Map(),
    storages: { volumes: new Map([["d5", { driver: DRIVER, handle: "d5" }]]) },
  } as unknown as World;
  return reportedWaits(world)[0]?.handle;
}

test("what a controller knows by its VolumeAttachment alone is the disk that the attachment's name is made of", () => {
  const name = (volumeHandle: string, node: string) =>
    `volumeattachment:${volumeAttachmentName({ driver: DRIVER, volumeHandle }, node)}`;

  expect(handleOf(`kubernetes.io/csi/${DRIVER}^d5`)).toBe("d5");
  expect(handleOf(name("d5", "node-1"))).toBe("d5");
  expect(handleOf(name("d5", "node-2"))).toBe(name("d5", "node-2"));
  expect(handleOf(name("d6", "node-1"))).toBe(name("d6", "node-1"));
});
