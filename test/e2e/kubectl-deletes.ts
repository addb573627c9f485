// What kubectl waits for, and how things go away.
import { expect, test } from "vitest";
import { claim, configMap, node, pod } from "./kubectl-objects.ts";
import type { Suite } from "./kubectl-suite.ts";
import { cells, table } from "./kubectl.ts";

export function deletes({ kubectl, given, value }: Suite): void {
  test("wait returns at once for what is true already, and says so when time is up", async () => {
    await given("wait", pod("wait", "web"));

    expect(
      await kubectl.ok("wait", "ns/wait", "--for=jsonpath={.status.phase}=Active", "--timeout=10s"),
    ).toBe("namespace/wait condition met\n");
    expect(
      await kubectl.refused("-n", "wait", "wait", "pod/web", "--for=condition=Ready", "--timeout=1s"),
    ).toContain("timed out waiting for the condition on pods/web");
  });

  test("wait --for=delete returns when the object goes", async () => {
    await given("gone", configMap("gone", "held", {}));
    await kubectl.ok(
      "-n",
      "gone",
      "patch",
      "cm",
      "held",
      "-p",
      '{"metadata":{"finalizers":["example.com/held"]}}',
    );
    await kubectl.ok("-n", "gone", "delete", "cm", "held", "--wait=false");
    let over = false;
    const waiting = kubectl.ok("-n", "gone", "wait", "cm/held", "--for=delete", "--timeout=10s");
    void waiting.finally(() => (over = true)).catch(() => undefined);

    expect(await value("gone", "cm/held", ".metadata.deletionGracePeriodSeconds")).toBe("0");
    expect(over).toBe(false);
    await kubectl.ok("-n", "gone", "patch", "cm", "held", "-p", '{"metadata":{"finalizers":null}}');

    expect(await waiting).toBe("configmap/held condition met\n");
  });

  test("delete by name, by label, and what is not there", async () => {
    const labelled = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { namespace: "delete", name: "b", labels: { x: "y" } },
    };
    await given("delete", configMap("delete", "a", {}), labelled, configMap("delete", "c", {}));
    const remove = (...which: string[]) => kubectl.ok("-n", "delete", "delete", "cm", ...which);

    expect(await remove("a")).toMatch(/^configmap "a" deleted/);
    expect(await remove("-l", "x=y")).toMatch(/^configmap "b" deleted/);
    expect(await kubectl.refused("-n", "delete", "delete", "cm", "a")).toBe(
      'Error from server (NotFound): configmaps "a" not found\n',
    );
    expect(await remove("a", "--ignore-not-found")).toBe("");
    expect(await kubectl.ok("-n", "delete", "get", "cm", "c", "-o", "name")).toBe("configmap/c\n");
  });

  test("delete --force takes a scheduled pod away without waiting for its node", async () => {
    await given("force", node("force-node"), pod("force", "web", { nodeName: "force-node" }));
    await kubectl.ok("-n", "force", "delete", "pod", "web", "--wait=false");
    expect(cells(table(await kubectl.ok("-n", "force", "get", "pods")), ["NAME", "STATUS"])).toEqual([
      ["web", "Terminating"],
    ]);

    await kubectl.ok("-n", "force", "delete", "pod", "web", "--force", "--grace-period=0");

    expect(await kubectl.ok("-n", "force", "get", "pods", "-o", "name")).toBe("");
  });

  test("a claim that a pod uses goes when the pod has gone", async () => {
    const user = pod("in-use", "web", { claimName: "data", nodeName: "in-use-node" });
    await given("in-use", node("in-use-node"), claim("in-use", "data"), user);
    const status = async () => cells(table(await kubectl.ok("-n", "in-use", "get", "pvc")), ["STATUS"]);

    await kubectl.ok("-n", "in-use", "delete", "pvc", "data", "--wait=false");
    expect(await status()).toEqual([["Terminating"]]);
    await kubectl.ok("-n", "in-use", "delete", "pod", "web", "--force", "--grace-period=0");

    await kubectl.ok("-n", "in-use", "wait", "pvc/data", "--for=delete", "--timeout=10s");
    expect(await status()).toEqual([]);
  });

  test("delete of a namespace waits until all in it is gone", async () => {
    await given(
      "whole",
      configMap("whole", "c", {}),
      claim("whole", "data"),
      pod("whole", "web", { claimName: "data" }),
    );
    await kubectl.ok("-n", "whole", "create", "secret", "generic", "s");

    expect(await kubectl.ok("delete", "namespace", "whole", "--timeout=10s")).toBe(
      'namespace "whole" deleted\n',
    );

    expect(await kubectl.refused("get", "namespace", "whole")).toContain('namespaces "whole" not found');
    for (const kind of ["cm", "pods", "pvc", "secrets", "sa"]) {
      expect([kind, await kubectl.ok("-n", "whole", "get", kind, "-o", "name")]).toEqual([kind, ""]);
    }
  });
}
