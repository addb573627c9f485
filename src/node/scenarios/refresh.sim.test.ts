import { describe, expect, test } from "vitest";
import type { Volume } from "kubernetes-types/core/v1.js";
import { configMaps } from "../../kube/api/config-map.ts";
import { pods } from "../../kube/api/pod.ts";
import { secrets } from "../../kube/api/secret.ts";
import { given, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";

function read(world: NodeWorld, plugin: string, file: string): Promise<string | undefined> {
  const uid = world.uidOf("web");
  return world.machine.files.read(`${NODE_ROOT}/pods/${uid}/volumes/kubernetes.io~${plugin}/${file}`);
}

const CONFIG: Volume = { name: "conf", configMap: { name: "settings" } };
const TOKEN: Volume = {
  name: "token",
  projected: { sources: [{ serviceAccountToken: { path: "token", expirationSeconds: 3_600 } }] },
};

const configMap = (data: Record<string, string>) => ({
  metadata: { name: "settings", namespace: "default" },
  data,
});

describe("content that changes under a pod", () => {
  test("a config map that changes is written within a second, without a turn of the pod", async () => {
    const world = await given({ builtIn: true });
    await world.client.create(configMaps, configMap({ a: "1" }));
    await world.startPod("web", { inline: [CONFIG] });
    await world.settle();
    expect(await read(world, "configmap", "conf/a")).toBe("1");

    const ref = { name: "settings", namespace: "default" };
    await world.client.patch(configMaps, ref, { type: "merge", value: { data: { a: "2" } } });
    await world.settle();

    expect(await read(world, "configmap", "conf/a")).toBe("2");
  });

  test("scenario 116: an optional secret that appears later fills its volume at once", async () => {
    const world = await given({ builtIn: true });
    await world.startPod("web", {
      inline: [{ name: "keys", secret: { secretName: "late", optional: true } }],
    });
    await world.settle();
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
    expect(await read(world, "secret", "keys/key")).toBeUndefined();

    await world.client.create(secrets, {
      metadata: { name: "late", namespace: "default" },
      data: { key: Buffer.from("value").toString("base64") },
    });
    await world.settle();

    expect(await read(world, "secret", "keys/key")).toBe("value");
  });

  test("scenario 121: labels of the pod that change are written at once", async () => {
    const items = [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }];
    const world = await given({
      builtIn: true,
      pods: { web: { inline: [{ name: "info", downwardAPI: { items } }] } },
    });
    expect(await read(world, "downward-api", "info/labels")).toBe("");

    const ref = { name: "web", namespace: "default" };
    await world.client.patch(pods, ref, { type: "merge", value: { metadata: { labels: { a: "b" } } } });
    await world.settle();

    expect(await read(world, "downward-api", "info/labels")).toContain('a="b"');
  });

  test("FIX 6: a token is replaced when it is due, not a pod's turn later", async () => {
    const world = await given({ builtIn: true, pods: { web: { inline: [TOKEN] } } });
    expect(await read(world, "projected", "token/token")).toBe("token-1");

    // 80 % of an hour, less 10 s at most.
    await world.runFor(0.8 * 3_600_000 - 12_000);
    expect(await read(world, "projected", "token/token")).toBe("token-1");
    await world.runFor(13_000);

    expect(await read(world, "projected", "token/token")).toBe("token-2");
  });

  test("scenario 32: a volume that cannot be followed does not stop the refresh of the others", async () => {
    const world = await given({ builtIn: true, volumes: { v: { claim: "pending" } } });
    await world.client.create(configMaps, configMap({ a: "1" }));
    await world.startPod("web", { uses: ["v"], inline: [CONFIG] });
    await world.settle();

    const ref = { name: "settings", namespace: "default" };
    await world.client.patch(configMaps, ref, { type: "merge", value: { data: { a: "2" } } });
    await world.settle();

    expect(await read(world, "configmap", "conf/a")).toBe("2");
  });

  test("scenario 42: volumes of one name in two pods are two volumes, set up side by side", async () => {
    const world = await given({ builtIn: true });
    await world.client.create(configMaps, configMap({ a: "1" }));

    await world.startPod("web", { inline: [CONFIG] });
    await world.startPod("other", { inline: [CONFIG] });
    await world.settle();

    const volumes = world.manager.report().volumes.map(({ volume }) => volume);
    expect(new Set(volumes).size).toBe(2);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("other")).size).toBe(1);
  });

  test("scenario 44: a refresh that fails leaves the volume usable, and comes back", async () => {
    const world = await given({ driver: { requiresRepublish: true }, pods: { web: { uses: ["v"] } } });
    world.driver.fail("publish", "INTERNAL", { times: 2 });
    world.takeCalls();

    await world.runFor(95_000);

    expect(world.takeCalls().slice(0, 3)).toEqual(["publish v web", "publish v web", "publish v web"]);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
    expect(world.told().some((line) => line.startsWith("FailedMount MountVolume.SetUp failed"))).toBe(true);
  });

  test("a claim bound long after its pod came is published again like any other", async () => {
    const world = await given({
      driver: { requiresRepublish: true },
      volumes: { v: { claim: "pending" } },
      pods: { web: { uses: ["v"] } },
    });
    await world.runFor(200_000);
    await world.bindClaim("v");
    await world.settle();
    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);

    await world.runFor(95_000);

    expect(world.takeCalls()).toContain("publish v web");
  });
});
