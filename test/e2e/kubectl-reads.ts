// What kubectl prints: columns, descriptions, events, schemas.
import { expect, test } from "vitest";
import { claim, event, node, pod, storageClass, volume } from "./kubectl-objects.ts";
import type { Suite } from "./kubectl-suite.ts";
import { cells, described, table } from "./kubectl.ts";

export function reads({ kubectl, given, value }: Suite): void {
  test("get prints the namespaces every cluster has, with their status", async () => {
    const { header, rows } = table(await kubectl.ok("get", "namespaces"));

    expect(header).toEqual(["NAME", "STATUS", "AGE"]);
    const early = ["default", "kube-node-lease", "kube-public", "kube-system"];
    expect(rows.map(([name, status]) => [name, status])).toEqual(
      expect.arrayContaining(early.map((name) => [name, "Active"])),
    );
  });

  test("get -o wide prints every column of the volume kinds", async () => {
    const objects = [node("wide-node"), storageClass("wide-class"), volume("wide-volume")];
    const users = [claim("wide", "data"), pod("wide", "web", { claimName: "data", nodeName: "wide-node" })];
    await given("wide", ...objects, ...users);
    const wide = async (...which: string[]) =>
      table(await kubectl.ok("-n", "wide", "get", ...which, "-o", "wide"));

    const [nodes, volumes, claims, pods, classes] = await Promise.all([
      wide("node", "wide-node"),
      wide("pv", "wide-volume"),
      wide("pvc"),
      wide("pods"),
      wide("sc", "wide-class"),
    ]);

    expect(nodes.header.join(",")).toBe(
      "NAME,STATUS,ROLES,AGE,VERSION,INTERNAL-IP,EXTERNAL-IP,OS-IMAGE,KERNEL-VERSION,CONTAINER-RUNTIME",
    );
    expect(cells(nodes, ["NAME", "STATUS", "ROLES", "VERSION"])).toEqual([
      ["wide-node", "Ready", "storage", "v1.33.0"],
    ]);
    expect(volumes.header.join(",")).toBe(
      "NAME,CAPACITY,ACCESS MODES,RECLAIM POLICY,STATUS,CLAIM,STORAGECLASS,VOLUMEATTRIBUTESCLASS,REASON,AGE,VOLUMEMODE",
    );
    expect(cells(volumes, ["NAME", "CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "VOLUMEMODE"])).toEqual([
      ["wide-volume", "1Gi", "RWO", "Retain", "Filesystem"],
    ]);
    expect(claims.header.join(",")).toBe(
      "NAME,STATUS,VOLUME,CAPACITY,ACCESS MODES,STORAGECLASS,VOLUMEATTRIBUTESCLASS,AGE,VOLUMEMODE",
    );
    expect(cells(claims, ["NAME", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS"])).toEqual([
      ["data", "manual", "<unset>"],
    ]);
    expect(pods.header.join(",")).toBe(
      "NAME,READY,STATUS,RESTARTS,AGE,IP,NODE,NOMINATED NODE,READINESS GATES",
    );
    expect(cells(pods, ["NAME", "READY", "STATUS", "RESTARTS", "NODE"])).toEqual([
      ["web", "0/2", "Pending", "0", "wide-node"],
    ]);
    expect(cells(classes, ["NAME", "PROVISIONER", "RECLAIMPOLICY", "ALLOWVOLUMEEXPANSION"])).toEqual([
      ["wide-class", "disks.example.com", "Delete", "true"],
    ]);
  });

  test("get selects, sorts and pages", async () => {
    const labelled = { ...claim("select", "b", { labels: { tier: "gold" } }) };
    await given("select", claim("select", "c"), labelled, claim("select", "a"));
    const names = (...flags: string[]) => kubectl.ok("-n", "select", "get", "pvc", "-o", "name", ...flags);
    const claims = (...all: string[]) => all.map((name) => `persistentvolumeclaim/${name}\n`).join("");

    expect(await names("-l", "tier=gold")).toBe(claims("b"));
    expect(await names("--field-selector", "metadata.name=c")).toBe(claims("c"));
    expect(await names("--chunk-size=2")).toBe(claims("a", "b", "c"));
    const sorted = table(await kubectl.ok("-n", "select", "get", "pvc", "--sort-by={.metadata.name}"));
    expect(sorted.rows.map(([name]) => name)).toEqual(["a", "b", "c"]);
  });

  test("get -w prints a second line when an object changes", async () => {
    await given("watched", claim("watched", "data"));
    const watching = kubectl.watch("-n", "watched", "get", "pvc", "-w", "--show-labels");
    await watching.until(2);

    await kubectl.ok("-n", "watched", "label", "pvc", "data", "tier=gold");
    const { rows } = table((await watching.until(3)).join("\n"));
    await watching.end();

    expect(rows.map((row) => [row[0], row.at(-1)])).toEqual([
      ["data", "<none>"],
      ["data", "tier=gold"],
    ]);
  });

  test("describe pvc names the pods that use it and finds its events", async () => {
    await given("used", claim("used", "data"), pod("used", "web", { claimName: "data" }));
    const uid = await value("used", "pvc/data", ".metadata.uid");
    const failed = {
      uid,
      reason: "ProvisioningFailed",
      type: "Warning",
      message: "no space left",
    } as const;
    const stranger = { ...failed, uid: "another", message: "about an earlier claim" };
    await kubectl.ok("create", "-f", kubectl.file("used-event", event("used", "data", failed)));
    await kubectl.ok("create", "-f", kubectl.file("stranger", event("used", "data.old", stranger)));

    const printed = await kubectl.ok("-n", "used", "describe", "pvc", "data");

    expect(described(printed, "StorageClass")).toBe("manual");
    expect(described(printed, "Finalizers")).toBe("[kubernetes.io/pvc-protection]");
    expect(described(printed, "Used By")).toBe("web");
    expect(printed).toMatch(/Events:\n(?:.*\n){2} +Warning +ProvisioningFailed +\S+ +disks +no space left\n/);
    expect(printed).not.toContain("earlier claim");
  });

  test("describe pv prints its source", async () => {
    await kubectl.ok("create", "-f", kubectl.file("described-volume", volume("described")));

    const printed = await kubectl.ok("describe", "pv", "described");

    expect(described(printed, "Capacity")).toBe("1Gi");
    expect(described(printed, "Finalizers")).toBe("[kubernetes.io/pv-protection]");
    expect(described(printed, "Driver")).toBe("disks.example.com");
    expect(described(printed, "VolumeHandle")).toBe("handle-described");
  });

  test("describe node counts its pods, describe pod shows where its volume comes from", async () => {
    const user = pod("described", "web", { claimName: "data", nodeName: "described-node" });
    await given("described", node("described-node"), claim("described", "data"), user);

    const theNode = await kubectl.ok("describe", "node", "described-node");
    const thePod = await kubectl.ok("-n", "described", "describe", "pod", "web");

    expect(described(theNode, "Roles")).toBe("storage");
    expect(described(theNode, "Non-terminated Pods")).toBe("(1 in total)");
    expect(theNode).toMatch(/^ +described +web +0 \(0%\)/m);
    expect(described(thePod, "Node")).toBe("described-node/");
    expect(described(thePod, "ClaimName")).toBe("data");
    expect(thePod).toContain("/data from data (rw)");
  });

  test("events lists all, and those for one object or of one type", async () => {
    await given("events", claim("events", "data"), claim("events", "logs"));
    const made = (name: string, reason: string, type: "Normal" | "Warning") =>
      event("events", name, { uid: "any", reason, type, message: `${reason} ${name}` });
    const some = [
      made("data", "Bound", "Normal"),
      made("data", "Failed", "Warning"),
      made("logs", "Bound", "Normal"),
    ];
    await kubectl.ok("create", "-f", kubectl.file("events", ...some));
    const messages = async (...flags: string[]) => {
      const { header, rows } = table(await kubectl.ok("-n", "events", "events", ...flags));
      expect(header).toEqual(["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
      return rows.map((row) => row.at(-1)).sort();
    };

    expect(await messages()).toEqual(["Bound data", "Bound logs", "Failed data"]);
    expect(await messages("--for", "pvc/data")).toEqual(["Bound data", "Failed data"]);
    expect(await messages("--types=Warning")).toEqual(["Failed data"]);
    const got = table(await kubectl.ok("-n", "events", "get", "events"));
    expect(new Set(got.rows.map((row) => row[3]))).toEqual(
      new Set(["persistentvolumeclaim/data", "persistentvolumeclaim/logs"]),
    );
  });

  test("explain knows the fields and their types", async () => {
    const printed = await kubectl.ok("explain", "persistentvolumeclaim.spec.resources");

    expect(described(printed, "KIND")).toBe("PersistentVolumeClaim");
    expect(described(printed, "FIELD")).toBe("resources <VolumeResourceRequirements>");
    expect(printed).toMatch(/^ {2}requests\t<map\[string\]Quantity>$/m);
    expect(await kubectl.refused("explain", "pvc.spec.resource")).toContain(
      'field "resource" does not exist',
    );
  });

  test("api-resources lists what is served; what is not is named", async () => {
    const printed = table(await kubectl.ok("api-resources"));

    expect(printed.header).toEqual(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]);
    expect(printed.rows).toEqual(
      expect.arrayContaining([
        ["persistentvolumeclaims", "pvc", "v1", "true", "PersistentVolumeClaim"],
        ["nodes", "no", "v1", "false", "Node"],
        ["volumeattachments", "", "storage.k8s.io/v1", "false", "VolumeAttachment"],
        ["leases", "", "coordination.k8s.io/v1", "true", "Lease"],
      ]),
    );
    expect(await kubectl.refused("get", "crd")).toContain(`doesn't have a resource type "crd"`);
  });

  test("get --raw reaches what is not a resource", async () => {
    expect(await kubectl.ok("get", "--raw", "/readyz")).toBe("ok");
    expect(JSON.parse(await kubectl.ok("get", "--raw", "/version"))).toMatchObject({ major: "1" });
  });
}
