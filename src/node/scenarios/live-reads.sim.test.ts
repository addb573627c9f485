import { describe, expect, test } from "vitest";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { volumeAttachments } from "../../kube/api/volume-attachment.ts";
import type { Transport } from "../../kube/transport/transport.ts";
import { given, type NodeWorld } from "../../sim/node-world.ts";

/** What must not be an answer of before is read from the server, and what is written keeps what others wrote meanwhile. */

/** Watches of these objects say nothing more from the moment `silence` is called: what is followed is of before. */
function deafTo(plural: string) {
  let deaf = false;
  const wrapTransport = (real: Transport): Transport => ({
    ...real,
    request: (request) => real.request(request),
    stream: async (request) => {
      const answer = await real.stream(request);
      if (!request.path.includes(`/${plural}`)) return answer;
      async function* body() {
        for await (const chunk of answer.body) {
          if (deaf) await new Promise(() => undefined);
          yield chunk;
        }
      }
      return { ...answer, body: body() };
    },
    close: () => real.close(),
  });
  return { wrapTransport, silence: () => void (deaf = true) };
}

async function unregistered(deaf: ReturnType<typeof deafTo>): Promise<NodeWorld> {
  const world = await given({ pods: { web: { uses: ["v"] } }, started: false, registered: false });
  world.start({ wrapTransport: deaf.wrapTransport });
  await world.settle();
  deaf.silence();
  return world;
}

describe("a VolumeAttachment as followed, and as it is", () => {
  test("not attached any more: nothing is staged, whatever is followed", async () => {
    const world = await unregistered(deafTo("volumeattachments"));
    const value = { status: { attached: false } };
    const ref = { name: world.attachmentOf("v") };
    await world.client.patch(volumeAttachments, ref, { type: "merge", value }, { subresource: "status" });

    world.registerDriver();
    await world.settle();

    expect(world.takeCalls()).toEqual([]);
    expect(world.told().join()).toContain("is not attached for volume attachment");
  });

  test("being deleted: nothing is staged", async () => {
    const world = await unregistered(deafTo("volumeattachments"));
    const ref = { name: world.attachmentOf("v") };
    const value = { metadata: { finalizers: ["example.com/detach"] } };
    await world.client.patch(volumeAttachments, ref, { type: "merge", value });
    await world.client.delete(volumeAttachments, ref);

    world.registerDriver();
    await world.settle();

    expect(world.takeCalls()).toEqual([]);
    expect(world.told().join()).toContain("volume attachment is being deleted");
  });

  test("one request a stage, none a publish", async () => {
    const world = await given({ pods: { a: { uses: ["v"] }, b: { uses: ["v"] } } });

    const reads = world.requests.filter((line) => /^GET .*\/volumeattachments\/[^?]+$/.test(line));
    expect(world.takeCalls()[0]).toBe("stage v");
    expect(reads).toHaveLength(1);
  });
});

test("growing a volume keeps the conditions that others wrote since the claim was seen", async () => {
  const deaf = deafTo("persistentvolumeclaims");
  const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
  await world.setClaimStatus("v", { phase: "Bound", capacity: { storage: "1Gi" } });
  world.start({ wrapTransport: deaf.wrapTransport });
  await world.settle();
  await world.setClaimStatus("v", {
    conditions: [{ type: "FileSystemResizePending", status: "True" }],
  });
  await world.settle();
  deaf.silence();
  const seen = world.claim("v")?.status?.conditions ?? [];
  await world.setClaimStatus("v", { conditions: [...seen, { type: "example.com/Backup", status: "True" }] });

  await world.patchPersistentVolume("v", { spec: { capacity: { storage: "2Gi" } } });
  await world.runFor(2_000);

  expect(world.takeCalls()).toContain(`expand v ${2 * 1024 ** 3}`);
  expect(world.read(persistentVolumeClaims, { namespace: "default", name: "claim-v" })?.status).toMatchObject(
    {
      capacity: { storage: "2147483648" },
      conditions: [{ type: "example.com/Backup", status: "True" }],
    },
  );
});
