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

test("what an attacher waits with is the disk that was recorded, also once its PersistentVolume is gone or another", () => {
  const volumeHandle = "mooring.dev/volume-handle";
  const handleWith = (annotations: object, volumes: Readonly<Record<string, string>>) => {
    const since = "2026-01-01T00:00:00Z";
    const waitingFor = { reason: "backoff", object: { kind: "Volume", name: "" }, since, message: "" };
    const attachment = { volumeAttachment: "csi-1", node: "node-1", persistentVolume: "pv-1", waitingFor };
    const objects = {
      get: (kind: string, name: string) => {
        if (kind === "volumeattachments.storage.k8s.io") return { metadata: { name, annotations } };
        const handle = volumes[name];
        return handle === undefined ? undefined : { spec: { csi: { volumeHandle: handle } } };
      },
    };
    const world = {
      ...{ scheduler: { nowMs: 0 }, controllers: new Map(), nodes: new Map(), objects },
      processes: new Map([["attacher", { isRunning: true }]]),
      attacherPage: () => ({ time: since, attachments: [attachment] }),
    } as unknown as World;
    return reportedWaits(world)[0]?.handle;
  };

  expect(handleWith({ [volumeHandle]: "d5" }, {})).toBe("d5");
  expect(handleWith({ [volumeHandle]: "d5" }, { "pv-1": "d6" })).toBe("d5");
  expect(handleWith({}, { "pv-1": "d6" })).toBe("d6");
  expect(handleWith({}, {})).toBe("");
});
