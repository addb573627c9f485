import { describe, expect, test } from "vitest";
import { givenServer } from "../scenario.testing.ts";

const T = "/api/v1/namespaces/t";

describe("parts of a pod", () => {
  const EPHEMERAL = { type: "application/strategic-merge-patch+json" };

  test("ephemeral containers are added to one that runs, and stay as they are", async () => {
    const { ok, send } = await givenServer();
    const containers = [{ name: "c", image: "i" }];
    await ok("POST", `${T}/pods`, { metadata: { name: "a" }, spec: { containers } });
    const patch = (image: string) => ({
      spec: { ephemeralContainers: [{ name: "debug", image }], nodeName: "ignored" },
    });

    const added = await ok("PATCH", `${T}/pods/a/ephemeralcontainers`, patch("busybox:1"), EPHEMERAL);
    const changed = await send("PATCH", `${T}/pods/a/ephemeralcontainers`, patch("busybox:2"), EPHEMERAL);
    const direct = await send("PATCH", `${T}/pods/a`, patch("busybox:1"), EPHEMERAL);

    expect(added["spec"]).toMatchObject({
      ephemeralContainers: [{ name: "debug", imagePullPolicy: "IfNotPresent" }],
    });
    expect(added["spec"]).not.toHaveProperty("nodeName");
    expect(changed.status).toBe(422);
    expect(direct.status).toBe(422);
  });

  test("resize changes resources alone, and not the class of the pod", async () => {
    const { ok, send } = await givenServer();
    const container = (cpu: string, image = "i") => ({ name: "c", image, resources: { requests: { cpu } } });
    await ok("POST", `${T}/pods`, { metadata: { name: "a" }, spec: { containers: [container("1")] } });

    const resized = await ok(
      "PATCH",
      `${T}/pods/a/resize`,
      { spec: { containers: [container("2", "other")] } },
      EPHEMERAL,
    );
    const best = await send(
      "PATCH",
      `${T}/pods/a/resize`,
      { spec: { containers: [{ name: "c", resources: { requests: null } }] } },
      EPHEMERAL,
    );

    expect(resized["spec"]).toMatchObject({
      containers: [{ image: "i", resources: { requests: { cpu: "2" } } }],
    });
    expect(resized.metadata.generation).toBe(2);
    expect(best.status).toBe(422);
    expect(best.text).toContain("Pod QOS Class may not change");
  });
});
