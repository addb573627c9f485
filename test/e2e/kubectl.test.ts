// An unmodified kubectl against the real binary: whatever a user types first has to work.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  claim,
  configMap,
  event,
  node,
  pod,
  serviceAccount,
  storageClass,
  volume,
} from "./kubectl-objects.ts";
import { createKubectl, described, kubectlIsHere, table, writeSedEditor, type Kubectl } from "./kubectl.ts";
import { Running, scratch } from "./mooring.ts";

const here = kubectlIsHere();
// eslint-disable-next-line no-console -- the task that runs all tests looks for this line
if (!here) console.log("left out: kubectl suite: no kubectl on this machine");

describe.runIf(here)("kubectl", { concurrent: true }, () => {
  const place = scratch();
  const data = join(place.path, "data");
  let server: Running;
  let kubectl: Kubectl;

  beforeAll(async () => {
    server = new Running("up", "--data-dir", data, "--listen", "127.0.0.1:0");
    await server.says(/Press Ctrl-C/);
    kubectl = createKubectl({ home: place.path, kubeconfig: join(data, "admin.kubeconfig") });
  });
  afterAll(async () => {
    server.kill("SIGTERM");
    await server.exit();
    place.remove();
  });

  /** Objects in a namespace of their own, which also has the account that pods run as. */
  async function given(namespace: string, ...objects: object[]): Promise<void> {
    const itself = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
    const file = kubectl.file(`given-${namespace}`, itself, serviceAccount(namespace, "runner"), ...objects);
    await kubectl.ok("create", "-f", file);
  }

  const value = (namespace: string, object: string, path: string) =>
    kubectl.ok("-n", namespace, "get", object, "-o", `jsonpath={${path}}`);

  describe("reads", () => {
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
      expect(printed).toMatch(
        /Events:\n(?:.*\n){2} +Warning +ProvisioningFailed +\S+ +disks +no space left\n/,
      );
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
      expect(await kubectl.refused("get", "deploy")).toContain(`doesn't have a resource type "deploy"`);
    });

    test("get --raw reaches what is not a resource", async () => {
      expect(await kubectl.ok("get", "--raw", "/readyz")).toBe("ok");
      expect(JSON.parse(await kubectl.ok("get", "--raw", "/version"))).toMatchObject({ major: "1" });
    });
  });

  describe("creates", () => {
    test("create -f says what it created, and says no the second time", async () => {
      const file = kubectl.file("made", configMap("default", "made", { a: "1" }), storageClass("made"));

      expect(await kubectl.ok("create", "-f", file)).toBe(
        "configmap/made created\nstorageclass.storage.k8s.io/made created\n",
      );
      expect(await kubectl.refused("create", "-f", file)).toMatch(
        /\(AlreadyExists\): .*configmaps "made" already exists\n.*storageclasses.storage.k8s.io "made" already exists/,
      );
    });

    test("create ns, configmap, secret and sa, whose bodies are protobuf, keep what they say", async () => {
      expect(await kubectl.ok("create", "namespace", "proto")).toBe("namespace/proto created\n");
      await kubectl.ok("-n", "proto", "create", "configmap", "c", "--from-literal=a=1", "--from-literal=b=");
      await kubectl.ok("-n", "proto", "create", "secret", "generic", "s", "--from-literal=password=example");
      await kubectl.ok("-n", "proto", "create", "serviceaccount", "builder");

      expect(await value("proto", "ns/proto", ".spec.finalizers[0]")).toBe("kubernetes");
      expect(await value("proto", "ns/proto", ".metadata.labels")).toBe(
        '{"kubernetes.io/metadata.name":"proto"}',
      );
      expect(await value("proto", "cm/c", ".data")).toBe('{"a":"1","b":""}');
      expect(await value("proto", "secret/s", ".type")).toBe("Opaque");
      expect(await value("proto", "secret/s", ".data.password")).toBe(
        Buffer.from("example").toString("base64"),
      );
      expect(await kubectl.ok("-n", "proto", "get", "sa", "builder", "-o", "name")).toBe(
        "serviceaccount/builder\n",
      );
    });

    test("create token makes one that signs its account in", async () => {
      await given("token");
      const token = (await kubectl.ok("-n", "token", "create", "token", "runner", "--duration=1h")).trim();
      const url = await kubectl.ok("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}");
      const authority = join(data, "pki/ca.crt");

      const flags = ["--kubeconfig=/dev/null", `--server=${url}`, `--certificate-authority=${authority}`];
      const printed = await kubectl.ok("auth", "whoami", ...flags, `--token=${token}`);

      expect(printed).toMatch(/^Username +system:serviceaccount:token:runner$/m);
    });

    test("a misspelt field is refused with its path, however it is sent", async () => {
      await given("misspelt");
      const typo = {
        ...claim("misspelt", "typo"),
        spec: { accessModes: ["ReadWriteOnce"], resources: { request: {} } },
      };
      const file = kubectl.file("typo", typo);

      for (const command of [["create"], ["apply"]]) {
        expect(await kubectl.refused(...command, "-f", file)).toContain(
          'strict decoding error: unknown field "spec.resources.request"',
        );
      }
      expect(await kubectl.refused("apply", "--server-side", "-f", file)).toContain(
        ".spec.resources.request: field not declared in schema",
      );
      expect(await kubectl.ok("-n", "misspelt", "get", "pvc", "-o", "name")).toBe("");
    });

    test("--dry-run=server shows the object with its defaults and keeps nothing", async () => {
      await given("dry");

      const flags = ["--dry-run=server", "-o", "jsonpath={.spec.volumeMode}"];
      const mode = await kubectl.ok(
        "create",
        ...flags,
        "-f",
        kubectl.file("dry-claim", claim("dry", "data")),
      );

      expect(mode).toBe("Filesystem");
      expect(await kubectl.ok("-n", "dry", "get", "pvc", "-o", "name")).toBe("");
    });
  });

  describe("changes", () => {
    test("apply creates, leaves alone, changes, and takes away what is no longer in the file", async () => {
      await given("apply");
      const apply = (content: Record<string, string>) =>
        kubectl.ok("apply", "-f", kubectl.file("applied", configMap("apply", "c", content)));

      expect(await apply({ k: "1", gone: "x" })).toBe("configmap/c created\n");
      expect(await apply({ k: "1", gone: "x" })).toBe("configmap/c unchanged\n");
      await kubectl.ok("-n", "apply", "patch", "cm", "c", "-p", '{"data":{"other":"o"}}');
      expect(await apply({ k: "2" })).toBe("configmap/c configured\n");

      expect(await value("apply", "cm/c", ".data")).toBe('{"k":"2","other":"o"}');
    });

    test("apply changes one container of a pod and leaves the rest", async () => {
      await given("apply-pod");
      const given_ = pod("apply-pod", "web") as { spec: { containers: { image: string }[] } };
      await kubectl.ok("apply", "-f", kubectl.file("apply-pod", given_));

      given_.spec.containers[1]!.image = "side:2";
      const said = await kubectl.ok("apply", "-f", kubectl.file("apply-pod", given_));

      expect(said).toBe("pod/web configured\n");
      expect(await value("apply-pod", "pod/web", ".spec.containers[*].image")).toBe("app:1 side:2");
    });

    test("apply --server-side: owners conflict until one of them insists", async () => {
      await given("owners");
      const apply = (k: string, ...flags: string[]) => {
        const file = kubectl.file("owned", configMap("owners", "c", { k }));
        return kubectl.run(["apply", "--server-side", "-f", file, ...flags]);
      };
      const applied = { code: 0, stdout: "configmap/c serverside-applied\n", stderr: "" };

      expect(await apply("1", "--field-manager=first")).toEqual(applied);
      expect(await apply("2", "--field-manager=first")).toEqual(applied);
      const refused = await apply("3", "--field-manager=second");
      expect([refused.code, refused.stderr.split("\n")[0]]).toEqual([
        1,
        'error: Apply failed with 1 conflict: conflict with "first": .data.k',
      ]);
      expect(await value("owners", "cm/c", ".data.k")).toBe("2");

      expect(await apply("3", "--field-manager=second", "--force-conflicts")).toEqual(applied);

      expect(await value("owners", "cm/c", ".data.k")).toBe("3");
      expect(await value("owners", "cm/c", ".metadata.managedFields[*].manager")).toBe("second");
    });

    test("diff exits with 0 when nothing would change and with 1 when something would", async () => {
      await given("diff");
      const file = (k: string) => kubectl.file(`diff-${k}`, configMap("diff", "c", { k }));
      await kubectl.ok("apply", "-f", file("1"));

      expect(await kubectl.run(["diff", "-f", file("1")])).toEqual({ code: 0, stdout: "", stderr: "" });
      for (const flags of [[], ["--server-side", "--force-conflicts"]]) {
        const { code, stdout } = await kubectl.run(["diff", ...flags, "-f", file("2")]);
        expect(code).toBe(1);
        expect(stdout).toMatch(/^- {2}k: "1"\n\+ {2}k: "2"$/m);
      }
      expect(await value("diff", "cm/c", ".data.k")).toBe("1");
    });

    test("edit sends what the editor changed, and nothing when it changed nothing", async () => {
      await given("edit", configMap("edit", "c", { k: "1" }));
      const change = writeSedEditor(place.path, "change", 's/k: "1"/k: "2"/');
      const nothing = writeSedEditor(place.path, "nothing", "s/absent/present/");
      const edit = (editor: string) =>
        kubectl.run(["-n", "edit", "edit", "cm", "c"], { KUBE_EDITOR: editor });

      expect(await edit(change)).toMatchObject({ code: 0, stdout: "configmap/c edited\n" });
      expect(await edit(nothing)).toMatchObject({ code: 0, stderr: "Edit cancelled, no changes made.\n" });

      expect(await value("edit", "cm/c", ".data.k")).toBe("2");
    });

    test("patch: json, merge and strategic each in its own way", async () => {
      await given("patch", configMap("patch", "c", { a: "1" }), pod("patch", "web"));
      const patch = (object: string, type: string, body: unknown) =>
        kubectl.run(["-n", "patch", "patch", object, `--type=${type}`, "-p", JSON.stringify(body)]);
      const guarded = (from: string, to: string) => [
        { op: "test", path: "/data/a", value: from },
        { op: "replace", path: "/data/a", value: to },
      ];

      expect((await patch("cm/c", "json", guarded("1", "2"))).stdout).toBe("configmap/c patched\n");
      expect((await patch("cm/c", "json", guarded("1", "3"))).code).toBe(1);
      expect(await value("patch", "cm/c", ".data")).toBe('{"a":"2"}');

      await patch("cm/c", "merge", { data: { a: null, b: "4" } });
      expect(await value("patch", "cm/c", ".data")).toBe('{"b":"4"}');
      expect((await patch("cm/c", "merge", { data: { b: "4" } })).stdout).toBe(
        "configmap/c patched (no change)\n",
      );

      await patch("pod/web", "strategic", { spec: { containers: [{ name: "side", image: "side:2" }] } });
      expect(await value("patch", "pod/web", ".spec.containers[*].image")).toBe("app:1 side:2");
    });

    test("what may not change is refused with its field", async () => {
      await kubectl.ok("create", "-f", kubectl.file("fixed", volume("fixed")));

      const said = await kubectl.refused(
        "patch",
        "pv",
        "fixed",
        "-p",
        '{"spec":{"csi":{"volumeHandle":"other"}}}',
      );

      expect(said).toMatch(
        /^The PersistentVolume "fixed" is invalid: spec\.persistentvolumesource: Forbidden: /,
      );
    });

    test("label and annotate set, refuse to overwrite, overwrite and take away", async () => {
      await given("labels", configMap("labels", "c", {}));
      const on = (...args: string[]) => kubectl.ok("-n", "labels", args[0]!, "cm", "c", ...args.slice(1));

      expect(await on("label", "tier=gold")).toBe("configmap/c labeled\n");
      expect(await kubectl.refused("-n", "labels", "label", "cm", "c", "tier=tin")).toContain(
        "--overwrite is false",
      );
      await on("label", "tier=tin", "--overwrite");
      await on("annotate", "example.com/note=kept");
      expect(await value("labels", "cm/c", ".metadata.labels.tier")).toBe("tin");
      expect(await value("labels", "cm/c", ".metadata.annotations")).toBe('{"example.com/note":"kept"}');

      expect(await on("label", "tier-")).toBe("configmap/c unlabeled\n");
      await on("annotate", "example.com/note-");
      expect(await value("labels", "cm/c", ".metadata.labels")).toBe("");
      expect(await value("labels", "cm/c", ".metadata.annotations")).toBe("");
    });

    test("a node is tainted, cordoned, uncordoned and drained", async () => {
      await kubectl.ok("create", "-f", kubectl.file("tainted", node("tainted")));
      const status = async () => cells(table(await kubectl.ok("get", "node", "tainted")), ["STATUS"]);

      expect(await kubectl.ok("taint", "node", "tainted", "disk=slow:NoSchedule")).toBe(
        "node/tainted tainted\n",
      );
      expect(await kubectl.refused("taint", "node", "tainted", "disk=slow:NoSchedule")).toContain(
        "already has disk taint(s) with same effect(s)",
      );
      expect(await value("default", "node/tainted", ".spec.taints")).toBe(
        '[{"effect":"NoSchedule","key":"disk","value":"slow"}]',
      );
      expect(await kubectl.ok("cordon", "tainted")).toBe("node/tainted cordoned\n");
      expect(await status()).toEqual([["Ready,SchedulingDisabled"]]);
      expect(await kubectl.ok("drain", "tainted")).toContain("node/tainted drained\n");

      await kubectl.ok("uncordon", "tainted");
      await kubectl.ok("taint", "node", "tainted", "disk-");
      expect(await status()).toEqual([["Ready"]]);
      expect(await value("default", "node/tainted", ".spec.taints[*].key")).toBe("");
    });
  });

  describe("waits and deletes", () => {
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

    test("delete of a namespace waits until all in it is gone", async () => {
      await given("whole", configMap("whole", "c", {}), pod("whole", "web"));
      await kubectl.ok("-n", "whole", "create", "secret", "generic", "s");

      expect(await kubectl.ok("delete", "namespace", "whole", "--timeout=10s")).toBe(
        'namespace "whole" deleted\n',
      );

      expect(await kubectl.refused("get", "namespace", "whole")).toContain('namespaces "whole" not found');
      for (const kind of ["cm", "pods", "secrets", "sa"]) {
        expect([kind, await kubectl.ok("-n", "whole", "get", kind, "-o", "name")]).toEqual([kind, ""]);
      }
    });
  });

  describe("who may do what", () => {
    test("auth whoami knows the administrator", async () => {
      const printed = await kubectl.ok("auth", "whoami");

      expect(printed).toMatch(/^Username +admin$/m);
      expect(printed).toMatch(/^Groups +\[system:masters system:authenticated\]$/m);
    });

    test("auth can-i answers for oneself and, impersonating, for others", async () => {
      await given("can");
      const runner = "--as=system:serviceaccount:can:runner";
      const canI = (...args: string[]) => kubectl.run(["-n", "can", "auth", "can-i", ...args]);

      expect(await canI("create", "pods")).toMatchObject({ code: 0, stdout: "yes\n" });
      expect(await canI("list", "pods", runner)).toMatchObject({ code: 1, stdout: "no\n" });
      expect(await kubectl.refused("-n", "can", "get", "pods", runner)).toBe(
        'Error from server (Forbidden): pods is forbidden: User "system:serviceaccount:can:runner" cannot list resource "pods" in API group "" in the namespace "can"\n',
      );

      await kubectl.ok("-n", "can", "create", "role", "reader", "--verb=get,list", "--resource=pods");
      const binding = ["rolebinding", "runner-reads", "--role=reader", "--serviceaccount=can:runner"];
      await kubectl.ok("-n", "can", "create", ...binding);

      expect(await canI("list", "pods", runner)).toMatchObject({ code: 0, stdout: "yes\n" });
      expect(await canI("delete", "pods", runner)).toMatchObject({ code: 1, stdout: "no\n" });
    });
  });
});

/** The named columns of every row. */
function cells(
  { header, rows }: ReturnType<typeof table>,
  columns: readonly string[],
): (string | undefined)[][] {
  return rows.map((row) => columns.map((column) => row[header.indexOf(column)]));
}
